"""The stored answer, read through the public views."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    Boolean,
    Connection,
    Row,
    Select,
    TableClause,
    column,
    false,
    func,
    select,
    table,
    true,
    type_coerce,
)

from db_dedup.dialects.batches import batches
from db_dedup.records import GroupSummary
from db_dedup.records.kinds import ALL_PAIRS, PairFilter
from db_dedup.records.pair_columns import PairColumns
from db_dedup.schema.tables import Tables
from db_dedup.schema.views import PartOfPairs, confirmed_pairs, exact_links
from db_dedup.store.streams import parts_of

_ROWS_A_FETCH = 10_000
_GROUPS_A_STATEMENT = 1_000
"""Drivers take some ten thousands of parameters at most."""


def view(tables: Tables, name: str, *columns: str) -> TableClause:
    """Return one of our views with these columns."""
    return table(tables.namespace.name(name), *map(column, columns), schema=tables.namespace.schema)


_PAIR_COLUMNS: Final = (
    "key_a",
    "key_b",
    "distance",
    "similarity",
    "kind",
    "contained_key",
    "other_place",
    "form",
)
_GROUP_COLUMNS: Final = ("group_id", "size", "representative_key", "is_loose", "is_abridged")


def pair_parts(tables: Tables, table_name: str, wanted: PairFilter) -> tuple[PartOfPairs, PartOfPairs]:
    """Select the wanted pairs of a table from each part of the view: confirmed pairs, then exact duplicates.

    The parts are read one after the other: MariaDB would compute all of the view first.
    """
    pairs, links = confirmed_pairs(tables), exact_links(tables)
    names = pairs.query.selected_columns.keys()
    named = (value.label(name) for value, name in zip(links.query.selected_columns, names, strict=True))
    links = links._replace(query=links.query.with_only_columns(*named))
    return _wanted(pairs, table_name, wanted), _wanted(links, table_name, wanted)


def _wanted(part: PartOfPairs, table_name: str, wanted: PairFilter) -> PartOfPairs:
    ids = (value.label(f"id_{number}") for number, value in enumerate(part.ids))
    pairs = part.query.add_columns(*ids).subquery("pairs")
    query = select(*(pairs.c[name] for name in _PAIR_COLUMNS)).where(pairs.c.table_name == table_name)
    if wanted.kinds is not None:
        query = query.where(pairs.c.kind.in_(wanted.kinds))
    if wanted.other_place is not None:
        flag = type_coerce(pairs.c.other_place, Boolean)
        query = query.where(flag == (true() if wanted.other_place else false()))
    return PartOfPairs(query, (pairs.c.id_0, pairs.c.id_1))


def read_pairs(
    connection: Connection,
    tables: Tables,
    table_name: str,
    limit: int | None = None,
    wanted: PairFilter = ALL_PAIRS,
) -> Iterator[PairColumns]:
    """Yield in parts every pair of a table that is wanted, and the link of every exact duplicate.

    The order is that in which their rows were stored, in all databases.
    """
    left = limit
    for query, ids in pair_parts(tables, table_name, wanted):
        for part in parts_of(connection, query.order_by(*ids).limit(left), _ROWS_A_FETCH):
            columns = _pair_columns(part)
            yield columns
            left = None if left is None else left - columns.count


def _pair_columns(rows: Sequence[Row[Any]]) -> PairColumns:
    keys_a, keys_b, distances, similarities, kinds, contained_keys, other_places, forms = zip(
        *rows, strict=True
    )
    return PairColumns(
        keys_a,
        keys_b,
        list(map(int, distances)),
        [None if similarity is None else float(similarity) for similarity in similarities],
        kinds,
        contained_keys,
        [None if flag is None else bool(flag) for flag in other_places],
        forms,
    )


def read_groups(
    connection: Connection, tables: Tables, table_name: str, limit: int | None = None
) -> Iterator[GroupSummary]:
    """Yield the groups of a table, the largest first."""
    groups, query = select_groups(tables, table_name)
    query = query.order_by(groups.c.size.desc(), groups.c.group_id).limit(limit)
    return map(group_of_row, connection.execute(query))


def select_groups(tables: Tables, table_name: str) -> tuple[TableClause, Select[Any]]:
    """Return (the view of groups, a query for those of a table, whose rows `group_of_row` takes)."""
    groups = view(tables, "duplicate_groups", "table_name", *_GROUP_COLUMNS)
    columns = (groups.c[name] for name in _GROUP_COLUMNS)
    return groups, select(*columns).where(groups.c.table_name == table_name)


def group_of_row(row: Row[Any]) -> GroupSummary:
    """Return the group that a row of the view describes."""
    flags = bool(row.is_loose), bool(row.is_abridged)
    return GroupSummary(row.group_id, int(row.size), row.representative_key, *flags)


def read_members(connection: Connection, tables: Tables, table_name: str, group_id: str) -> list[str]:
    """Return the row keys of a group, the representative first."""
    members = view(tables, "duplicate_members", "table_name", "group_id", "row_key", "is_representative")
    query = (
        select(members.c.row_key)
        .where(members.c.table_name == table_name, members.c.group_id == group_id)
        .order_by(members.c.is_representative.desc(), members.c.row_key)
    )
    return list(connection.execute(query).scalars())


def read_members_of(
    connection: Connection, tables: Tables, table_name: str, group_ids: Sequence[str], each: int | None = None
) -> dict[str, list[str]]:
    """Return group id -> at most `each` row keys, the representative first; groups in the order given."""
    members = view(tables, "duplicate_members", "table_name", "group_id", "row_key", "is_representative")
    order = (members.c.is_representative.desc(), members.c.row_key)
    place = func.row_number().over(partition_by=members.c.group_id, order_by=order)
    keys: dict[str, list[str]] = {group_id: [] for group_id in group_ids}
    for some in batches(keys, _GROUPS_A_STATEMENT):
        found = (
            select(members.c.group_id, members.c.row_key, place.label("place"))
            .where(members.c.table_name == table_name, members.c.group_id.in_(some))
            .subquery("found")
        )
        query = select(found.c.group_id, found.c.row_key).order_by(found.c.group_id, found.c.place)
        if each is not None:
            query = query.where(found.c.place <= each)
        for group_id, row_key in connection.execute(query):
            keys[group_id].append(row_key)
    return keys
