"""Errors of the database driver, and too little memory, as errors of ours."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import DedupError, TooMuchAtOnceError
from db_dedup.translation import Phrase

_Other = TypeVar("_Other", bound=Exception)

TranslateError = Callable[[SQLAlchemyError], DedupError]


def translate_driver_error(
    error: _Other | SQLAlchemyError | MemoryError, translate: TranslateError
) -> _Other | DedupError:
    """Return the error as a DedupError if the driver raised it or memory ran out, else as it is.

    Args:
        error: what was caught.
        translate: gives a driver's error in the words of its dialect.
    """
    if isinstance(error, MemoryError):
        return TooMuchAtOnceError(Phrase("not enough memory"))
    return translate(error) if isinstance(error, SQLAlchemyError) else error
