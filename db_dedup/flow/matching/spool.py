"""Large arrays in temporary files during a scan: above all the features of a whole table.

A million petitions have more than a gigabyte of features. The files are mapped into memory, so that the
system loads only the parts that the matching reads. They have hashes in them and no text, and are removed
when the scan ends.
"""

import errno
from contextlib import suppress
from types import TracebackType
from typing import IO, Final, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import SECTIONS, Details
from db_dedup.temporary_files import temporary_file, translate_temporary_errors

_Scalar = TypeVar("_Scalar", bound=np.generic)

_ZEROS_AT_A_TIME: Final = 1 << 20


class FeatureSpool:
    """Stores the features of one batch after another; returns those of all rows at the end.

    Raises:
        TemporaryFolderError: any method raises it if the folder for temporary files is full or cannot be
            used.
    """

    def __init__(self, keep_weights: bool) -> None:
        """Open the files; only the cosine needs the weights."""
        self._sketches = temporary_file()
        self._sketch_counts: list[NDArray[np.int64]] = []
        self._sketch_count = 0
        self._counts: list[NDArray[np.int64]] = []
        self._hashes = temporary_file()
        self._details = temporary_file()
        self._detail_counts: list[NDArray[np.int64]] = []
        self._weights = temporary_file() if keep_weights else None

    @property
    def row_count(self) -> int:
        """The number of rows whose features are stored."""
        return sum(counts.size for counts in self._counts)

    def add(self, features: Features, details: Details, is_kept: NDArray[np.bool_] | None = None) -> None:
        """Store the features and details of the next rows; a row that is not kept must have none."""
        kept = slice(None) if is_kept is None else is_kept
        self._counts.append(features.counts[kept])
        self._detail_counts.append(details.counts.reshape(-1, SECTIONS)[kept].reshape(-1))
        with translate_temporary_errors():
            self._hashes.write(features.hashes.data)
            self._details.write(details.values.data)
            if self._weights is not None:
                self._weights.write(features.weights.data)

    def add_sketches(self, sketches: Sketches) -> NDArray[np.int64]:
        """Store the sketches of n rows; return int64[n], their positions among all sketches."""
        first = self._sketch_count
        self._sketch_count += sketches.counts.size
        self._sketch_counts.append(sketches.counts)
        with translate_temporary_errors():
            self._sketches.write(sketches.values.data)
        return np.arange(first, self._sketch_count)

    def all_sketches(self) -> Sketches:
        """Return all sketches, mapped from the file; valid while the spool is open."""
        counts = np.concatenate([np.zeros(1, np.int64), *self._sketch_counts])
        return Sketches(np.cumsum(counts), mapped(self._sketches, np.uint64))

    def all_features(self) -> Features:
        """Return the features of all rows, mapped from the file; valid while the spool is open."""
        counts = np.concatenate([np.zeros(1, np.int64), *self._counts])
        hashes = mapped(self._hashes, np.uint64)
        weights = np.empty(0, np.int64) if self._weights is None else mapped(self._weights, np.int64)
        return Features(np.cumsum(counts), hashes, weights)

    def all_details(self) -> Details:
        """Return the details of all rows, mapped from the file; valid while the spool is open."""
        counts = np.concatenate([np.zeros(1, np.int64), *self._detail_counts])
        return Details(np.cumsum(counts), mapped(self._details, np.uint64))

    def __enter__(self) -> Self:
        """Return the spool itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files, which removes them."""
        for file in filter(None, (self._hashes, self._details, self._weights, self._sketches)):
            with suppress(OSError):  # closing writes the last bytes, which are not needed
                file.close()


def write_array(file: IO[bytes], values: NDArray[np.generic]) -> None:
    """Add an array to the end of a file."""
    with translate_temporary_errors():
        file.write(values.data)


def zeros(count: int, kind: type[_Scalar], most_bytes: int) -> NDArray[_Scalar]:
    """Return so many zeros; in a temporary file if they take more than `most_bytes`."""
    size = count * np.dtype(kind).itemsize
    if size <= most_bytes:
        return np.zeros(count, kind)
    with temporary_file() as file:
        # Written, not left as a hole: a full disk is an error now; later it would end the process.
        for first in range(0, size, _ZEROS_AT_A_TIME):
            write_array(file, np.zeros(min(_ZEROS_AT_A_TIME, size - first), np.uint8))
        with translate_temporary_errors():
            file.flush()
        return _as_array(file, kind, "r+")


def mapped(file: IO[bytes], kind: type[_Scalar]) -> NDArray[_Scalar]:
    """Return what has been written to a file, as an array; it may outlive the file.

    Raises:
        MemoryError: this process may not have so much.
        TemporaryFolderError: the folder of the file is full.
    """
    with translate_temporary_errors():
        file.flush()
    if file.seek(0, 2) == 0:
        return np.empty(0, kind)
    return _as_array(file, kind, "c")


def _as_array(file: IO[bytes], kind: type[_Scalar], mode: Literal["c", "r+"]) -> NDArray[_Scalar]:
    """Return a file that has been written whole as an array; raise MemoryError if it cannot be mapped."""
    try:
        # A plain, writable array: for a memmap or a read-only array numba would compile every kernel again.
        return np.asarray(np.memmap(file, kind, mode))
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError from None
        raise
