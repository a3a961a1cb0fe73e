"""The digests of former recipe versions. A label that was given under one of them is found by that digest.

Whoever raises RECIPE_VERSION adds a function here that computes the digests as before, and its line in
`_FORMER`. A function stays for good: a database may skip versions. Tests hold each by written-down values.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from db_dedup.config import RECIPE_VERSION, Value, WatchedTable
from db_dedup.engines.row_texts import digest_columns, digest_rows
from db_dedup.flow.normalise import normalise_batch
from db_dedup.records import SourceRow

DigestRows = Callable[[WatchedTable, Sequence[SourceRow]], list[bytes]]


def digest_as_of(recipe_version: int, watched: WatchedTable, rows: Sequence[SourceRow]) -> list[bytes]:
    """The digest of each row's text as that version of the recipes computed it.

    Args:
        recipe_version: one that this program knows.
        watched: the settings.
        rows: with the columns of these settings.
    """
    return (digest_rows if recipe_version == RECIPE_VERSION else _FORMER[recipe_version])(watched, rows)


def _version_1(watched: WatchedTable, rows: Sequence[SourceRow]) -> list[bytes]:
    """Values were normalised as plain texts: their links and masks were collapsed."""
    columns = [
        normalise_batch(
            [row.values[i] for row in rows], "plain" if isinstance(column, Value) else watched.normaliser
        )
        for i, column in enumerate(watched.columns.values())
    ]
    return digest_columns(columns, [row.within for row in rows])


_FORMER: Final[Mapping[int, DigestRows]] = {1: _version_1}
