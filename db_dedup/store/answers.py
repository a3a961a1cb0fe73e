"""The stored answer, read through the views everyone else reads."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, TableClause, column, func, select, table

from db_dedup.records import DuplicatePair, GroupSummary
from db_dedup.schema.tables import Tables

_ROWS_A_FETCH = 10_000


def view(tables: Tables, name: str, *columns: str) -> TableClause:
    """One of our views, with the columns asked for."""
    return table(tables.namespace.name(name), *map(column, columns), schema=tables.namespace.schema)


def read_pairs(
    connection: Connection, tables: Tables, table_name: str, limit: int | None = None
) -> Iterator[DuplicatePair]:
    """Every pair of a table, and the link of every copy."""
    pairs = view(tables, "duplicate_pairs", "table_name", "key_a", "key_b", "distance", "similarity")
    query = (
        select(pairs.c.key_a, pairs.c.key_b, pairs.c.distance, pairs.c.similarity)
        .where(pairs.c.table_name == table_name)
        .limit(limit)
        .execution_options(yield_per=_ROWS_A_FETCH)
    )
    for row in connection.execute(query):
        yield DuplicatePair(row[0], row[1], int(row[2]), None if row[3] is None else float(row[3]))


def read_groups(
    connection: Connection, tables: Tables, table_name: str, limit: int | None = None
) -> Iterator[GroupSummary]:
    """The groups of a table, the largest first."""
    groups = view(
        tables,
        "duplicate_groups",
        "table_name",
        "group_id",
        "size",
        "representative_key",
        "is_loose",
        "is_abridged",
    )
    query = (
        select(
            groups.c.group_id,
            groups.c.size,
            groups.c.representative_key,
            groups.c.is_loose,
            groups.c.is_abridged,
        )
        .where(groups.c.table_name == table_name)
        .order_by(groups.c.size.desc(), groups.c.group_id)
        .limit(limit)
    )
    for row in connection.execute(query):
        yield GroupSummary(row[0], int(row[1]), row[2], bool(row[3]), bool(row[4]))


def read_members(connection: Connection, tables: Tables, table_name: str, group_id: str) -> list[str]:
    """The row keys of a group, the representative first."""
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
    """Group id -> its row keys, the representative first, at most `each` of them; in the order asked for."""
    members = view(tables, "duplicate_members", "table_name", "group_id", "row_key", "is_representative")
    order = (members.c.is_representative.desc(), members.c.row_key)
    place = func.row_number().over(partition_by=members.c.group_id, order_by=order)
    found = (
        select(members.c.group_id, members.c.row_key, place.label("place"))
        .where(members.c.table_name == table_name, members.c.group_id.in_(group_ids))
        .subquery("found")
    )
    query = select(found.c.group_id, found.c.row_key).order_by(found.c.group_id, found.c.place)
    if each is not None:
        query = query.where(found.c.place <= each)
    keys: dict[str, list[str]] = {group_id: [] for group_id in group_ids}
    for group_id, row_key in connection.execute(query):
        keys[group_id].append(row_key)
    return keys
