"""Which errors a row may be the cause of."""

from sqlalchemy.exc import DataError, IntegrityError

from db_dedup.errors import RowKeyError


def is_of_a_row(error: Exception) -> bool:
    """Whether a row may be the cause, rather than the database or the settings: then others can go on."""
    return isinstance(
        error,
        RowKeyError
        | DataError
        | IntegrityError
        | ValueError
        | ArithmeticError
        | LookupError
        | TypeError
        | AssertionError,
    )
