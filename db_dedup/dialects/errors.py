"""What the errors of all databases have in common."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from db_dedup.errors import (
    DatabaseUnavailableError,
    DedupError,
    EvaluationError,
    RowKeyError,
    SegmenterError,
    StatementEndedError,
)

_QUOTED_VALUE = re.compile(r"'[^']*'")


def first_line(error: BaseException) -> str:
    """Return the first line of a driver's message: the following lines may show values."""
    lines = str(error).strip().splitlines()
    return " ".join(lines[0].split()) if lines else type(error).__name__


def one_line(error: BaseException) -> str:
    """Return a driver's whole message on one line, for errors that cannot show values."""
    return " ".join(str(error).split()) or type(error).__name__


def ended(error: SQLAlchemyError, template: str, /, **fields: object) -> DatabaseUnavailableError:
    """Return the error for a statement that the server ended, or for a connection where none was run yet."""
    is_of_statement = getattr(error, "statement", None) is not None
    kind = StatementEndedError if is_of_statement else DatabaseUnavailableError
    return kind(template, **fields)


def without_lost_savepoint(error: SQLAlchemyError, message: str) -> SQLAlchemyError:
    """Return the error that ended a transaction, where `error` only says that a savepoint of it is gone.

    A database may roll the whole transaction back, as after a deadlock or on a full disk. SQLAlchemy then
    returns to the savepoint in vain, and raises this second error.

    Args:
        error: any error.
        message: what the database says of a savepoint that is gone.
    """
    found, before = error, error.__context__
    while message in str(getattr(found, "orig", "")) and before is not None:
        if isinstance(before, SQLAlchemyError):
            found = before
        before = before.__context__
    return found


def without_values(message: str) -> str:
    """Return a message without what is in single quotes."""
    return _QUOTED_VALUE.sub("'...'", message)


@contextmanager
def evaluation_errors(translate: Callable[[SQLAlchemyError], DedupError]) -> Iterator[None]:
    """Raise EvaluationError where the database fails to evaluate a query for some row of the user's.

    Within it, rows of the user's are read. Another statement may end with the same error for another reason.
    """
    try:
        yield
    except SQLAlchemyError as error:
        fault = translate(error)
        if isinstance(fault, EvaluationError):
            raise fault from error
        raise


def is_of_a_row(error: Exception) -> bool:
    """Return whether a single row may be the cause, so that work can go on with the other rows."""
    return isinstance(
        error,
        RowKeyError
        | EvaluationError
        | SegmenterError
        | DataError
        | IntegrityError
        | ValueError
        | ArithmeticError
        | LookupError
        | TypeError
        | AssertionError,
    )
