"""The names of the objects of db_dedup in the user's database, within the limit of the dialect."""

import hashlib
from dataclasses import dataclass
from typing import Final

from db_dedup.errors import ConfigError

_HASH_DIGITS: Final = 8
# PostgreSQL's 63 less the "_pkc" that Alembic appends; kept in all databases, so that the names are the same.
_NARROWEST_LIMIT_BYTES: Final = 59


@dataclass(frozen=True)
class Namespace:
    """Where the objects of db_dedup are: in a schema, or under a prefix if the dialect has no schemas.

    Raises:
        ConfigError: neither is given, so the names could be those of the user's tables.
    """

    schema: str | None
    prefix: str

    def __post_init__(self) -> None:  # noqa: D105
        if not self.schema and not self.prefix:
            raise ConfigError(
                'the prefix may not be empty where the database has no schemas: try prefix = "dedup_"'
            )

    def name(self, base: str) -> str:
        """Return the name of a table, index or fixed view of db_dedup, without its schema."""
        return object_name(self, base, _NARROWEST_LIMIT_BYTES, limit_counts_bytes=True)


def object_name(namespace: Namespace, base: str, limit: int | None, *, limit_counts_bytes: bool) -> str:
    """Return the name of an object of db_dedup, without its schema.

    Args:
        namespace: gives the prefix.
        base: the name before the prefix.
        limit: of the dialect, in bytes of UTF-8 or in characters; None for none.
        limit_counts_bytes: what `limit` counts.
    """
    return fit_name(namespace.prefix + base, limit, limit_counts_bytes=limit_counts_bytes)


def view_name(namespace: Namespace, table_name: str, limit: int | None, *, limit_counts_bytes: bool) -> str:
    """Return the name of the view of a watched table's rows with their groups, without its schema."""
    base = f"duplicates_of_{table_name}"
    return object_name(namespace, base, limit, limit_counts_bytes=limit_counts_bytes)


def fit_name(name: str, limit: int | None, *, limit_counts_bytes: bool) -> str:
    """Return the name if it fits; else its beginning, `_` and eight digits of its hash.

    Cut names that begin alike stay different by their hashes. A character is never cut in two.
    """
    encoded = name.encode()
    if limit is None or (len(encoded) if limit_counts_bytes else len(name)) <= limit:
        return name
    kept = limit - _HASH_DIGITS - 1
    beginning = encoded[:kept].decode(errors="ignore") if limit_counts_bytes else name[:kept]
    digest = hashlib.blake2b(encoded, digest_size=_HASH_DIGITS // 2).hexdigest()
    return f"{beginning}_{digest}"
