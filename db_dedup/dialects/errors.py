"""What the error messages of all databases have in common."""

import re

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import DatabaseUnavailableError, StatementEndedError

_QUOTED_VALUE = re.compile(r"'[^']*'")


def first_line(error: BaseException) -> str:
    """The first line of a driver's message: what follows may show values."""
    lines = str(error).strip().splitlines()
    return " ".join(lines[0].split()) if lines else type(error).__name__


def one_line(error: BaseException) -> str:
    """A driver's whole message on one line, for errors that cannot show values."""
    return " ".join(str(error).split()) or type(error).__name__


def ended(error: SQLAlchemyError, message: str) -> DatabaseUnavailableError:
    """An error for a statement that the server ended; where none was run yet, for a connection."""
    is_of_statement = getattr(error, "statement", None) is not None
    return StatementEndedError(message) if is_of_statement else DatabaseUnavailableError(message)


def without_values(message: str) -> str:
    """A message with all that stands in single quotes left out."""
    return _QUOTED_VALUE.sub("'...'", message)
