"""Write a file whole, or leave what was there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from db_dedup.errors import ConfigError


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield the path of a file that takes the place of this one, if nothing fails.

    The permissions stay. What is there and no regular file, such as /dev/stdout, is written itself.

    Raises:
        ConfigError: the file cannot be written.
    """
    unfinished = unfinished_file(path)
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        yield unfinished
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path.resolve())
    except OSError as error:
        raise not_written(path, error) from None
    finally:
        unfinished.unlink(missing_ok=True)


def unfinished_file(path: Path) -> Path:
    """Return the path of the file that `replaced` yields for a regular file, or for a link to one.

    Each process has its own: two that write the same file must not mix their rows.
    """
    place = path.resolve()
    return place.with_name(f".{place.name}.{os.getpid()}.part")


def not_written(path: Path, error: OSError) -> ConfigError:
    """Return the error for a file that cannot be written."""
    reason = error if error.errno is None else os.strerror(error.errno)  # PyArrow names our temporary file
    return ConfigError("cannot write {path}: {reason}", path=path, reason=reason)
