"""The stored answer in pages: each begins after the last entry of the one before.

A page is ordered by what identifies its entries (row keys, or the size of a group and its id), so it stays
valid while scans and workers change the answer: an entry that is there all the time comes exactly once.
"""

from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, or_, select

from db_dedup.records import DuplicatePair, GroupSummary
from db_dedup.records.kinds import PairFilter
from db_dedup.schema.tables import Tables
from db_dedup.store.answers import group_of_row, pair_parts, select_groups, view


class PairPlace(NamedTuple):
    """The place of a pair: confirmed pairs (part 0) come before links of exact duplicates (part 1)."""

    part: int
    key_a: str
    key_b: str


class GroupPlace(NamedTuple):
    """The place of a group: the largest first."""

    size: int
    group_id: str


def read_pair_page(
    connection: Connection,
    tables: Tables,
    table_name: str,
    after: PairPlace | None,
    limit: int,
    wanted: PairFilter,
) -> list[tuple[PairPlace, DuplicatePair]]:
    """Return at most `limit` pairs that follow a place, each with its own place."""
    found: list[tuple[PairPlace, DuplicatePair]] = []
    for part, (query, _) in enumerate(pair_parts(tables, table_name, wanted)):
        if (after is not None and part < after.part) or len(found) == limit:
            continue
        c = query.selected_columns
        page = query.order_by(c.key_a, c.key_b).limit(limit - len(found))
        if after is not None and part == after.part:
            is_later = or_(c.key_a > after.key_a, c.key_b > after.key_b)
            page = page.where(c.key_a >= after.key_a, is_later)
        rows = connection.execute(page)
        found += [(PairPlace(part, row.key_a, row.key_b), _pair(row)) for row in rows]
    return found


def read_group_page(
    connection: Connection, tables: Tables, table_name: str, after: GroupPlace | None, limit: int
) -> list[GroupSummary]:
    """Return at most `limit` groups that follow a place, the largest first."""
    groups, query = select_groups(tables, table_name)
    if after is not None:
        same_size = and_(groups.c.size == after.size, groups.c.group_id > after.group_id)
        query = query.where(or_(groups.c.size < after.size, same_size))
    query = query.order_by(groups.c.size.desc(), groups.c.group_id).limit(limit)
    return list(map(group_of_row, connection.execute(query)))


def read_group_of(
    connection: Connection, tables: Tables, table_name: str, row_key: str
) -> GroupSummary | None:
    """Return the group that a row is in; None if it is in none."""
    members = view(tables, "duplicate_members", "table_name", "group_id", "row_key")
    group_id = select(members.c.group_id).where(
        members.c.table_name == table_name, members.c.row_key == row_key
    )
    found = connection.execute(group_id).scalar()
    if found is None:
        return None
    groups, query = select_groups(tables, table_name)
    row = connection.execute(query.where(groups.c.group_id == found)).first()
    return None if row is None else group_of_row(row)


def read_member_page(
    connection: Connection, tables: Tables, table_name: str, group_id: str, after: str | None, limit: int
) -> list[str]:
    """Return at most `limit` row keys of a group that follow a key; its representative is left out."""
    members = view(tables, "duplicate_members", "table_name", "group_id", "row_key")
    query = select(members.c.row_key).where(
        members.c.table_name == table_name, members.c.group_id == group_id, members.c.row_key != group_id
    )
    if after is not None:
        query = query.where(members.c.row_key > after)
    return list(connection.execute(query.order_by(members.c.row_key).limit(limit)).scalars())


def _pair(row: Any) -> DuplicatePair:
    return DuplicatePair(
        row.key_a,
        row.key_b,
        int(row.distance),
        None if row.similarity is None else float(row.similarity),
        row.kind,
        row.contained_key,
        None if row.other_place is None else bool(row.other_place),
        row.form,
    )
