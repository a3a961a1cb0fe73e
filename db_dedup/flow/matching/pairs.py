"""Duplicate pairs in columns, in memory as far as there are few, else in temporary files."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from types import TracebackType
from typing import IO, Final, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.matching.spool import mapped, write_array
from db_dedup.temporary_files import temporary_file

BYTES_A_PAIR: Final = 19


@dataclass(frozen=True)
class Pairs:
    """p pairs of rows, left received before right.

    The similarity is NaN if it was not computed; the kinds are packed as in `records.kinds`.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    distances: NDArray[np.int16]
    similarities: NDArray[np.float64]
    kinds: NDArray[np.uint8]

    def among(self, rows: NDArray[np.int32]) -> "Pairs":
        """Return the same pairs, where the numbers of rows so far are positions in `rows`."""
        return Pairs(rows[self.left], rows[self.right], self.distances, self.similarities, self.kinds)


NO_PAIRS: Final = Pairs(
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.int16),
    np.empty(0, np.float64),
    np.empty(0, np.uint8),
)
_COLUMNS: Final = tuple(field.name for field in fields(Pairs))


def concatenate_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Return the pairs of all parts, of which there is at least one."""
    return Pairs(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


class PairSpool:
    """Takes pairs part by part, and gives them as one.

    Pairs that take more memory than allowed are written to temporary files, one for each column. They come
    back mapped from these, so that the system loads only what is read.

    Raises:
        TemporaryFolderError: any method raises it if the folder for temporary files is full or cannot be
            used.
    """

    def __init__(self, most_bytes: int) -> None:
        """Take how many bytes of pairs may be in memory; to join them takes as many again."""
        self._most_bytes = most_bytes
        self._held: list[Pairs] = []
        self._held_bytes = 0
        self._files: list[IO[bytes]] = []
        self._resources = ExitStack()

    def add(self, part: Pairs) -> None:
        """Take the next pairs."""
        self._held.append(part)
        self._held_bytes += BYTES_A_PAIR * part.left.size
        if self._held_bytes > self._most_bytes:
            self._write()

    def all_pairs(self) -> Pairs:
        """Return all pairs, in the order in which they came; they outlive the spool."""
        if not self._files:
            return concatenate_pairs([NO_PAIRS, *self._held])
        self._write()
        return Pairs(
            *(
                mapped(file, getattr(NO_PAIRS, name).dtype.type)
                for name, file in zip(_COLUMNS, self._files, strict=True)
            )
        )

    def _write(self) -> None:
        for _ in range(len(_COLUMNS) - len(self._files)):
            self._files.append(self._resources.enter_context(temporary_file()))
        for part in self._held:
            for name, file in zip(_COLUMNS, self._files, strict=True):
                write_array(file, getattr(part, name))
        self._held, self._held_bytes = [], 0

    def __enter__(self) -> Self:
        """Return the spool itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files; a mapped array stays valid as long as it is referred to."""
        self._resources.close()
