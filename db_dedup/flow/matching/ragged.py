"""Rows of different lengths in arrays that grow; the last rows can be removed."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

_Number = TypeVar("_Number", bound=np.generic)


class Ragged:
    """n rows in compressed sparse form. To add rows takes time with their own size, not with n."""

    def __init__(self, *kinds: DTypeLike) -> None:
        """Make an object without rows.

        Args:
            kinds: the dtypes of the arrays of values; a row has equally many values in each array.
        """
        self._starts = np.zeros(1024, np.int64)
        self._values = [np.empty(1024, kind) for kind in kinds]
        self._count = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    @property
    def starts(self) -> NDArray[np.int64]:
        """int64[n + 1]: row i owns the slice starts[i]:starts[i + 1] of the values."""
        return self._starts[: self._count + 1]

    def values(self, which: int) -> NDArray[Any]:
        """Return the values of all rows in one of the arrays."""
        return self._values[which][: self.starts[-1]]

    def add(self, counts: NDArray[np.int64], values: Sequence[NDArray[Any]]) -> None:
        """Add rows.

        Args:
            counts: int64[k], how many values each new row has.
            values: for each of the arrays the values of the k rows.
        """
        used, count = int(self.starts[-1]), self._count + counts.size
        self._starts = with_room(self._starts, count + 1)
        np.cumsum(counts, out=self._starts[self._count + 1 : count + 1])
        self._starts[self._count + 1 : count + 1] += used
        self._count = count
        for which, new in enumerate(values):
            self._values[which] = with_room(self._values[which], used + new.size)
            self._values[which][used : used + new.size] = new

    def keep(self, count: int) -> None:
        """Keep the first `count` rows, and remove all others."""
        self._count = count


def with_room(array: NDArray[_Number], size: int) -> NDArray[_Number]:
    """Return the array, or a larger one that begins with it if it has fewer than `size` elements."""
    if size <= array.size:
        return array
    larger = np.empty(max(size, 2 * array.size), array.dtype)
    larger[: array.size] = array
    return larger
