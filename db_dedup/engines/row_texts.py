"""The columns of rows as they are compared, and the digest of them, by which equal rows are found."""

import hashlib
from collections.abc import Collection, Sequence
from typing import Final

from db_dedup.config import ColumnWeight, Value, WatchedTable
from db_dedup.flow.normalise import fold_batch, normalise_batch
from db_dedup.records import SourceRow

_DIGEST_BYTES: Final = 16

NOTHING_TO_SAY: Final = bytes(_DIGEST_BYTES)
"""Digest of a row without any feature: such rows are never copies of each other."""


def compared_texts(column: ColumnWeight, texts: Sequence[str], normaliser: str) -> list[str]:
    """Texts of one column as they are compared; a value keeps its links and masks."""
    return fold_batch(texts) if isinstance(column, Value) else normalise_batch(texts, normaliser)


def compared_columns(
    columns: Collection[ColumnWeight], normaliser: str, rows: Sequence[Sequence[str]]
) -> list[list[str]]:
    """Column by column, the texts of these rows as they are compared."""
    return [compared_texts(column, [row[i] for row in rows], normaliser) for i, column in enumerate(columns)]


def digest_rows(watched: WatchedTable, rows: Sequence[SourceRow]) -> list[bytes]:
    """The digest of each row's text, also of a row without any feature."""
    values = [row.values for row in rows]
    columns = compared_columns(watched.columns.values(), watched.normaliser, values)
    return digest_columns(columns, [row.within for row in rows])


def digest_columns(columns: Sequence[Sequence[str]], within: Sequence[str | None] | None) -> list[bytes]:
    """Digest of each row's columns and of what it must agree in, so that copies agree in both.

    The texts hold no control character that counts as white space, so the separators are safe.
    """
    must_agree = within or [None] * len(columns[0])
    return [
        _digest("\x1f".join(texts) + f"\x1e{agree}")
        for texts, agree in zip(zip(*columns, strict=True), must_agree, strict=True)
    ]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
