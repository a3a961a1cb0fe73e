"""The few groups that can fit a filter, found from the pairs or rows that it asks for.

A list that looks through all groups finds what is common at once, and what is rare only after a long time.
This search begins at the pairs or rows that the filter asks for. It finds what is rare at once. If too many
rows fit, it gives up, and the list looks through all groups.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Boolean, Column, Connection, Select, func, select, true, type_coerce

from db_dedup.dialects.batches import batches
from db_dedup.records.kinds import KINDS
from db_dedup.records.reviews import GroupFilter
from db_dedup.store.fingerprints import FingerprintStore

_MOST: Final = 2_000
"""Rows; if more fit a filter, a list that looks through all groups fills its pages soon."""
_IDS_A_QUERY: Final = 50_000
_KEYS_A_QUERY: Final = 500


def find_candidates(
    connection: Connection, store: FingerprintStore, wanted: GroupFilter, end: float
) -> set[int] | None:
    """Return ids of groups, among them all that fit a filter.

    Args:
        connection: to our tables.
        store: of the table.
        wanted: the filter; only one of its conditions is looked at.
        end: when to give up, by `time.monotonic`.

    Returns:
        None if there are too many, if the time is over, or if the filter has no condition that helps.
    """
    if not (wanted.other_place or wanted.kind or wanted.since or wanted.until):
        return None
    rows: set[int] = set()
    for query in _queries(connection, store, wanted):
        # The limit ends the reading of what is common. DISTINCT would have to read it all.
        found = connection.execute(query.limit(_MOST + 1)).scalars().all()
        rows.update(map(int, found))
        if len(found) > _MOST or len(rows) > _MOST or time.monotonic() > end:
            return None
    return _groups_of(connection, store, rows)


def _queries(connection: Connection, store: FingerprintStore, wanted: GroupFilter) -> Iterator[Select[Any]]:
    """Yield queries for the ids of rows of the groups, each of a bounded number of rows."""
    row, pair = store.tables.fingerprint.c, store.tables.pair.c
    # Not joined with the rows: MariaDB would begin with these.
    if wanted.other_place:
        is_flagged = type_coerce(pair.other_place, Boolean) == true()
        yield from _in_parts(connection, select(pair.id_a).where(is_flagged), pair.id_a)
    elif wanted.kind is not None:
        if wanted.kind == "copy":
            yield select(row.id).where(row.copy_of > 0)
        of_kind = select(pair.id_a).where(pair.kind == KINDS.index(wanted.kind))
        yield from _in_parts(connection, of_kind, pair.id_a)
    else:
        of_rows = select(row.id).where(store.mine, row.group_id > 0)
        if wanted.since:
            of_rows = of_rows.where(row.order_value >= wanted.since)
        if wanted.until:
            of_rows = of_rows.where(row.order_value < wanted.until)
        yield from _in_parts(connection, of_rows, row.id)


def _in_parts(connection: Connection, query: Select[Any], key: Column[Any]) -> Iterator[Select[Any]]:
    """Yield a query for parts of an integer key, which is the first of a primary key."""
    lowest, highest = connection.execute(select(func.min(key), func.max(key))).one()
    if lowest is None:
        return
    for begin in range(int(lowest), int(highest) + 1, _IDS_A_QUERY):
        yield query.where(key >= begin, key < begin + _IDS_A_QUERY)


def _groups_of(connection: Connection, store: FingerprintStore, rows: set[int]) -> set[int]:
    row = store.tables.fingerprint.c
    query = select(row.group_id).where(store.mine, row.group_id > 0)
    return {
        int(group)
        for some in batches(sorted(rows), _KEYS_A_QUERY)
        for group in connection.execute(query.where(row.id.in_(some))).scalars()
    }
