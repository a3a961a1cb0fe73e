"""Counts over the stored answer of one table, for a report."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from db_dedup.records.kinds import KINDS, Kind
from db_dedup.records.reports import SIMILARITY_BINS, PlaceGroup, RepeatCount
from db_dedup.store.fingerprints import FingerprintStore

_MONTH = len("2024-02")


def count_distances(connection: Connection, store: FingerprintStore) -> dict[int, int]:
    """Return distance in bits -> pairs, in order; exact duplicates have no distance."""
    distance = store.tables.pair.c.distance
    query = _pairs(store, distance, func.count()).group_by(distance).order_by(distance)
    return {int(bits): int(count) for bits, count in connection.execute(query)}


def count_similarities(connection: Connection, store: FingerprintStore) -> tuple[int, ...]:
    """Return the pairs in each of `SIMILARITY_BINS` bins; () if no pair has a similarity."""
    similarity = store.tables.pair.c.similarity
    # Not every SQLite has floor(), and databases differ in how they cast to integers.
    begins = ((similarity >= place / SIMILARITY_BINS, place) for place in reversed(range(SIMILARITY_BINS)))
    place = case(*begins).label("place")
    bins = [0] * SIMILARITY_BINS
    query = _pairs(store, place, func.count()).where(similarity.is_not(None)).group_by(place)
    for found, count in connection.execute(query):
        bins[int(found)] += int(count)
    return tuple(bins) if any(bins) else ()


def count_kinds(connection: Connection, store: FingerprintStore) -> dict[Kind, int]:
    """Return kind -> pairs, in the order of `KINDS`; links of exact duplicates are copies."""
    row, kind = store.tables.fingerprint, store.tables.pair.c.kind
    counts = dict.fromkeys(KINDS, 0)
    for number, count in connection.execute(_pairs(store, kind, func.count()).group_by(kind)):
        if number is not None:
            counts[KINDS[int(number)]] += int(count)
    links = select(func.count()).select_from(row).where(store.mine, row.c.copy_of > 0)
    counts["copy"] += int(connection.execute(links).scalar_one())
    return counts


def count_other_places(connection: Connection, store: FingerprintStore) -> int:
    """Return how many pairs each name a place that the other does not."""
    query = _pairs(store, func.count()).where(store.tables.pair.c.other_place)
    return int(connection.execute(query).scalar_one())


def other_place_groups(connection: Connection, store: FingerprintStore, limit: int) -> list[PlaceGroup]:
    """Return the groups with the most such pairs."""
    row, pair = store.tables.fingerprint, store.tables.pair
    first = row.alias("first")
    count = func.count().label("pairs")
    query = (
        select(first.c.row_key, first.c.group_size, count)
        .select_from(pair.join(row, row.c.id == pair.c.id_a).join(first, first.c.id == row.c.group_id))
        .where(store.mine, pair.c.other_place)
        .group_by(first.c.row_key, first.c.group_size)
        .order_by(count.desc(), first.c.row_key)
        .limit(limit)
    )
    return [PlaceGroup(key, int(size), int(pairs)) for key, size, pairs in connection.execute(query)]


def loose_groups(connection: Connection, store: FingerprintStore, limit: int) -> list[tuple[str, int]]:
    """Return row key of the representative and size of the largest loose groups."""
    row = store.tables.fingerprint
    query = (
        select(row.c.row_key, row.c.group_size)
        .where(store.mine, row.c.group_size > 0, row.c.is_loose)
        .order_by(row.c.group_size.desc(), row.c.row_key)
        .limit(limit)
    )
    return [(key, int(size)) for key, size in connection.execute(query)]


def count_months(connection: Connection, store: FingerprintStore) -> list[RepeatCount]:
    """Return the rows of each month of the order column, which holds dates, the earliest month first."""
    row = store.tables.fingerprint
    month = func.substr(row.c.order_value, 1, _MONTH).label("month")
    repeats = func.count(case((_is_repeat(store), 1)))
    query = (
        select(month, func.count(), repeats)
        .where(store.mine, row.c.order_value.is_not(None))
        .group_by(month)
        .order_by(month)
    )
    return [RepeatCount(label, int(rows), int(again)) for label, rows, again in connection.execute(query)]


def _is_repeat(store: FingerprintStore) -> ColumnElement[bool]:
    row = store.tables.fingerprint
    return (row.c.group_id > 0) & (row.c.group_id != row.c.id)


def _pairs(store: FingerprintStore, *chosen: Any) -> Select[Any]:
    row, pair = store.tables.fingerprint, store.tables.pair
    return select(*chosen).select_from(pair.join(row, row.c.id == pair.c.id_a)).where(store.mine)
