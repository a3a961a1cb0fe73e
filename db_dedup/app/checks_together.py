"""Check records that are going to be stored together: with each other, and not with what they replace."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from db_dedup.engines.base import Lookup
from db_dedup.flow.rows.keys import storable_key
from db_dedup.records import CheckResult, Record, RowKey


def compare_together(
    connection: Connection,
    source_connection: Connection,
    lookup: Lookup,
    records: Sequence[Record],
    found: Sequence[CheckResult],
    replaced: Iterable[RowKey | None],
) -> list[CheckResult]:
    """Return the results of records as they are once all of the records are stored.

    Args:
        connection: to our tables.
        source_connection: to the user's rows.
        lookup: of the table.
        records: n records.
        found: n results, of a comparison with the rows as they are now.
        replaced: the keys of rows that these records overwrite, or that are deleted with them.
    """
    gone = set(row_keys_of(lookup, replaced))
    earlier: dict[int, list[int]] = defaultdict(list)
    if len(records) > 1:
        for one, other in lookup.pairs_among(connection, records, source_connection):
            earlier[other].append(one)
    return [
        replace(
            result,
            matches=[match for match in result.matches if match.row_key not in gone],
            others=tuple(earlier[i]),
        )
        for i, result in enumerate(found)
    ]


def row_keys_of(lookup: Lookup, given: Iterable[RowKey | None]) -> list[str | None]:
    """Return keys of a caller's as row keys; None stays None.

    Raises:
        RowKeyError: no row can be stored under one of them.
        InvalidArgumentError: one is no key of the table.
    """
    return [None if key is None else storable_key(lookup.row_key_of(key)) for key in given]
