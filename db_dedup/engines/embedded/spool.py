"""The features of a whole table, kept in a temporary file while the scan reads.

A million petitions have more than a gigabyte of features; the file is mapped, so that the system keeps in
memory what the matching touches. It holds hashes only, never text, and is gone when the scan ends.
"""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import TemporaryFolderError
from db_dedup.flow.features import Features
from db_dedup.flow.sketches import Sketches

_Scalar = TypeVar("_Scalar", bound=np.generic)

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FeatureSpool:
    """Takes the features of one batch after another; gives those of all rows at the end.

    Raises:
        TemporaryFolderError: by any method, where the folder for temporary files is full or cannot be used.
    """

    def __init__(self, keep_weights: bool) -> None:
        """Open the files. Only the cosine asks for weights."""
        self._sketches = _temporary_file()
        self._sketch_counts: list[NDArray[np.int64]] = []
        self._sketch_count = 0
        self._counts: list[NDArray[np.int64]] = []
        self._hashes = _temporary_file()
        self._weights = _temporary_file() if keep_weights else None

    @property
    def row_count(self) -> int:
        """How many rows' features it holds."""
        return sum(counts.size for counts in self._counts)

    def add(self, features: Features, is_kept: NDArray[np.bool_] | None = None) -> None:
        """Take the features of the next rows; of those that are not kept, none may have any."""
        self._counts.append(features.counts if is_kept is None else features.counts[is_kept])
        with _faults_told():
            self._hashes.write(features.hashes.data)
            if self._weights is not None:
                self._weights.write(features.weights.data)

    def add_sketches(self, sketches: Sketches) -> NDArray[np.int64]:
        """Take the sketches of some rows; int64[n], where each of them stands."""
        first = self._sketch_count
        self._sketch_count += sketches.counts.size
        self._sketch_counts.append(sketches.counts)
        with _faults_told():
            self._sketches.write(sketches.values.data)
        return np.arange(first, self._sketch_count)

    def all_sketches(self) -> Sketches:
        """All sketches, mapped from the file; valid while the spool is open."""
        counts = np.concatenate([np.zeros(1, np.int64), *self._sketch_counts])
        return Sketches(np.cumsum(counts), _mapped(self._sketches, np.uint64))

    def all_features(self) -> Features:
        """The features of all rows, mapped from the file; valid while the spool is open."""
        counts = np.concatenate([np.zeros(1, np.int64), *self._counts])
        hashes = _mapped(self._hashes, np.uint64)
        weights = np.empty(0, np.int64) if self._weights is None else _mapped(self._weights, np.int64)
        return Features(np.cumsum(counts), hashes, weights)

    def __enter__(self) -> Self:
        """The spool itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files, which removes them."""
        for file in filter(None, (self._hashes, self._weights, self._sketches)):
            with suppress(OSError):  # what is not written yet is of no use any more
                file.close()


def _temporary_file() -> IO[bytes]:
    with _faults_told():
        file: IO[bytes] = tempfile.TemporaryFile(prefix="db-dedup-")  # noqa: SIM115 - the spool closes it
    return file


@contextmanager
def _faults_told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if tempfile.tempdir is None:  # none of those that the system proposes can be written to
            raise TemporaryFolderError(f"{error.strerror}: set TMPDIR to a folder that is") from None
        what = "is full" if error.errno in _FULL else f"cannot be used ({error.strerror})"
        raise TemporaryFolderError(
            f"the temporary folder {tempfile.tempdir} {what}: set TMPDIR to a folder with more room"
        ) from None


def _mapped(file: IO[bytes], kind: type[_Scalar]) -> NDArray[_Scalar]:
    with _faults_told():
        file.flush()
    if file.seek(0, 2) == 0:
        return np.empty(0, kind)
    # A plain array that looks writable: kernels take any other for another type, and compile again.
    return np.asarray(np.memmap(file, kind, "c"))
