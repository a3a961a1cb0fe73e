"""Row keys as texts: which ones can be stored, and which texts can be one."""

import json
from collections import Counter
from collections.abc import Sequence

from db_dedup.errors import RowKeyError
from db_dedup.flow.rows.values import holds_nul, is_encodable
from db_dedup.records.keys import MAX_KEY_LENGTH


def storable_key(row_key: str) -> str:
    """Return the same row key.

    Raises:
        RowKeyError: it cannot be stored.
    """
    if len(row_key) > MAX_KEY_LENGTH:
        raise RowKeyError(
            "a row key has {length} characters, more than the {longest} that fit: it begins {row_key!r}",
            length=len(row_key),
            longest=MAX_KEY_LENGTH,
            row_key=row_key[:40],
        )
    if not is_encodable(row_key):
        raise RowKeyError(
            "a row key is no valid UTF-8 text: {row_key!r}; mend it, or leave such rows out by `where`",
            row_key=row_key[:40],
        )
    if holds_nul(row_key):
        raise RowKeyError(
            "a row key holds a NUL character: {row_key!r}; mend it, or leave such rows out by `where`",
            row_key=row_key[:40],
        )
    return row_key


def storable_keys(row_keys: Sequence[str]) -> Sequence[str]:
    """Return the same row keys; raise what `storable_key` raises for one of them."""
    joined = "".join(row_keys)
    # What makes a key unfit is in none of most pages.
    may_be_unfit = not joined.isascii() or "\0" in joined or "\\" in joined
    if may_be_unfit or max(map(len, row_keys), default=0) > MAX_KEY_LENGTH:
        return list(map(storable_key, row_keys))
    return row_keys


def may_be_key(text: str, columns: int) -> bool:
    """Return whether a text has the form of a row key of so many columns.

    A database may refuse to read a text as JSON that is none.
    """
    if columns == 1:
        return True
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(parts, list) and [type(part) for part in parts] == [str] * columns


def refuse_repeated(row_keys: Sequence[str]) -> None:
    """Raise RowKeyError where two rows have the same key."""
    if len(set(row_keys)) < len(row_keys):
        raise repeated_key(Counter(row_keys).most_common(1)[0][0])


def repeated_key(row_key: str) -> RowKeyError:
    """Return the error for two rows that have this key."""
    return RowKeyError("two rows have the same key {row_key!r}: name a unique key", row_key=row_key[:40])
