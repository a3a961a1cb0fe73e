"""Files and folders that last as long as one command, in the folder that TMPDIR names."""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from db_dedup.errors import DiskFullError, TemporaryFolderError

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FOLDER_FULL: Final = "the temporary folder {folder} is full: set TMPDIR to a folder with more room"
_FOLDER_UNUSABLE: Final = (
    "the temporary folder {folder} cannot be used ({reason}): set TMPDIR to a folder with more room"
)


def temporary_file() -> IO[bytes]:
    """Return a new file that is removed when it is closed.

    Raises:
        TemporaryFolderError: it cannot be made.
    """
    with translate_temporary_errors():
        file: IO[bytes] = tempfile.TemporaryFile(prefix="db-dedup-")  # noqa: SIM115 - the caller closes it
    return file


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder that is removed after the block, with all that is in it.

    Raises:
        TemporaryFolderError: it cannot be made, or a database in it has no more room.
    """
    with translate_temporary_errors():
        resource = tempfile.TemporaryDirectory(prefix="db-dedup-", ignore_cleanup_errors=True)
    with resource as folder:
        try:
            yield Path(folder)
        except DiskFullError as error:
            if str(Path(folder).resolve()) not in str(error):  # SQLITE_TMPDIR names another folder
                raise
            raise TemporaryFolderError(_FOLDER_FULL, folder=tempfile.gettempdir()) from None


@contextmanager
def translate_temporary_errors() -> Iterator[None]:
    """Re-raise an OSError of the block as TemporaryFolderError."""
    try:
        yield
    except OSError as error:
        if tempfile.tempdir is None:  # none of the temporary folders of the system can be written to
            raise TemporaryFolderError(
                "{reason}: set TMPDIR to a folder that is", reason=error.strerror
            ) from None
        raise TemporaryFolderError(
            _FOLDER_FULL if error.errno in _FULL else _FOLDER_UNUSABLE,
            folder=tempfile.tempdir,
            reason=error.strerror,
        ) from None
