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
    place = path.resolve()
    is_other = place.exists() and not place.is_file()
    unfinished = place if is_other else unfinished_file(place)
    try:
        yield unfinished
        if not is_other:
            if place.exists():
                shutil.copymode(place, unfinished)
            unfinished.replace(place)
    except OSError as error:
        raise not_written(path, error) from None
    finally:
        if not is_other:
            unfinished.unlink(missing_ok=True)


def unfinished_file(path: Path) -> Path:
    """Return the path of the file that `replaced` yields for a regular file."""
    return path.with_name(f".{path.name}.part")


def not_written(path: Path, error: OSError) -> ConfigError:
    """Return the error for a file that cannot be written."""
    reason = error if error.errno is None else os.strerror(error.errno)  # PyArrow names our temporary file
    return ConfigError("cannot write {path}: {reason}", path=path, reason=reason)
