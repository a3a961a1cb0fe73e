"""What taking a turn in the caller's transaction has in common in all databases."""

from typing import Final

from db_dedup.errors import ConfigError

TURN_SECONDS: Final = 10
"""So long one waits for those whose turn it is: writers of the same table, a batch of the worker."""


def no_transaction() -> ConfigError:
    """What to say where a lock would be gone with its statement."""
    return ConfigError(
        "a check that blocks needs a transaction, and this connection commits each statement by itself: "
        "hand over one without AUTOCOMMIT"
    )
