"""Samples of a table's pairs and rows: from places that are spread evenly over a primary key."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Select, Table, func, select

from db_dedup.store.fingerprints import FingerprintStore

_PLACES: Final = 20
_ROWS_A_PLACE: Final = 200


class SampledRow(NamedTuple):
    """A row: its order value, and whether it repeats an earlier row of its group."""

    row_key: str
    order_value: str | None
    is_repeat: bool


def count_sizes(connection: Connection, store: FingerprintStore) -> dict[int, int]:
    """Return size of a group -> how many groups have it, from the index of sizes alone."""
    size = store.tables.fingerprint.c.group_size
    query = select(size, func.count()).where(store.mine, size > 0).group_by(size)
    return {int(value): int(count) for value, count in connection.execute(query)}


def sample_distances(connection: Connection, store: FingerprintStore) -> tuple[dict[int, int], bool]:
    """Return (distance -> number of sampled pairs, whether these are all pairs)."""
    pair, row = store.tables.pair, store.tables.fingerprint
    query = select(pair.c.id_a, pair.c.distance).join(row, row.c.id == pair.c.id_a).where(store.mine)
    found: Counter[int] = Counter()
    is_all = True
    for part, is_cut in _spread(connection, query, pair, pair.c.id_a, (pair.c.id_b,)):
        found.update(int(distance) for _, distance in part)
        is_all &= not is_cut
    return dict(found), is_all


def sample_rows(connection: Connection, store: FingerprintStore) -> tuple[list[SampledRow], bool]:
    """Return (sampled rows, whether these are all rows)."""
    row = store.tables.fingerprint
    query = select(row.c.id, row.c.row_key, row.c.order_value, row.c.group_id).where(store.mine)
    found: list[SampledRow] = []
    is_all = True
    for part, is_cut in _spread(connection, query, row, row.c.id):
        found += [
            SampledRow(key, order, group is not None and int(group) != int(id_))
            for id_, key, order, group in part
        ]
        is_all &= not is_cut
    return found, is_all


def _spread(
    connection: Connection,
    query: Select[Any],
    table: Table,
    key: Column[Any],
    others: tuple[ColumnElement[Any], ...] = (),
) -> Iterator[tuple[list[Any], bool]]:
    """Yield (some rows of a query, whether there were more) for parts of equal width of an integer key."""
    lowest, highest = connection.execute(select(func.min(key), func.max(key)).select_from(table)).one()
    if lowest is None:
        return
    width = (int(highest) - int(lowest)) // _PLACES + 1
    for begin in range(int(lowest), int(highest) + 1, width):
        part = query.where(key >= begin, key < begin + width).order_by(key, *others)
        rows = list(connection.execute(part.limit(_ROWS_A_PLACE + 1)))
        yield rows[:_ROWS_A_PLACE], len(rows) > _ROWS_A_PLACE
