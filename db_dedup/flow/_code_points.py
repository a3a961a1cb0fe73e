"""The code points of texts, and tables of what kind each code point is."""

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

_CODE_POINTS: Final = 0x110000
_UNKNOWN: Final = 255


def code_points(text: str) -> NDArray[np.uint32]:
    """Return uint32[n]: the code points of a text; a lone surrogate is one of them."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class KindTable:
    """The kinds of code points, each found when a text first has the code point.

    To find the kinds of all code points at once would take longer than all other work of a single check.
    """

    def __init__(self, kind_of: Callable[[str], int]) -> None:
        """Make a table in which no kind is known yet.

        Args:
            kind_of: character -> its kind, 0 to 254.
        """
        self._kind_of = kind_of

    @cached_property
    def _kinds(self) -> NDArray[np.uint8]:
        # Not when the module is imported: to write a megabyte takes two milliseconds.
        return np.full(_CODE_POINTS, _UNKNOWN, np.uint8)

    def of(self, points: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return uint8[0x110000]: the kind of each code point, filled in at least for these points."""
        kinds = self._kinds
        # With "clip" numpy does not check all places first. All code points are in the table.
        new = np.unique(points[kinds.take(points, mode="clip") == _UNKNOWN])
        kinds[new] = [self._kind_of(chr(point)) for point in new.tolist()]
        return kinds
