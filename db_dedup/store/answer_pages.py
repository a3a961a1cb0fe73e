"""The stored answer in pages: each begins after the last entry of the one before.

A page is ordered by what identifies its entries (row keys, or the size of a group and its id), so it stays
valid while scans and workers change the answer: an entry that is there all the time comes exactly once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import Boolean, Connection, Select, Subquery, and_, false, or_, select, true, type_coerce

from db_dedup.records import DuplicatePair, GroupSummary
from db_dedup.records.kinds import PairFilter
from db_dedup.schema.tables import Tables
from db_dedup.schema.views import confirmed_pairs, exact_links
from db_dedup.store.answers import view


class PairPlace(NamedTuple):
    """The place of a pair: confirmed pairs (part 0) come before links of exact duplicates (part 1)."""

    part: int
    key_a: str
    key_b: str


class GroupPlace(NamedTuple):
    """The place of a group: the largest first."""

    size: int
    group_id: str


_GROUP_COLUMNS = ("table_name", "group_id", "size", "representative_key", "is_loose", "is_abridged")


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
    for part, of_part in enumerate(_PARTS):
        if (after is not None and part < after.part) or len(found) == limit:
            continue
        pairs = of_part(tables).subquery("pairs")
        query = _pairs(pairs, wanted).where(pairs.c.table_name == table_name)
        if after is not None and part == after.part:
            is_later = or_(pairs.c.key_a > after.key_a, pairs.c.key_b > after.key_b)
            query = query.where(pairs.c.key_a >= after.key_a, is_later)
        for row in connection.execute(query.limit(limit - len(found))):
            place = PairPlace(part, row.key_a, row.key_b)
            found.append((place, _pair(row)))
    return found


def read_group_page(
    connection: Connection, tables: Tables, table_name: str, after: GroupPlace | None, limit: int
) -> list[GroupSummary]:
    """Return at most `limit` groups that follow a place, the largest first."""
    groups = view(tables, "duplicate_groups", *_GROUP_COLUMNS)
    query = select(*groups.c).where(groups.c.table_name == table_name)
    if after is not None:
        same_size = and_(groups.c.size == after.size, groups.c.group_id > after.group_id)
        query = query.where(or_(groups.c.size < after.size, same_size))
    query = query.order_by(groups.c.size.desc(), groups.c.group_id).limit(limit)
    return [_group(row) for row in connection.execute(query)]


def read_group_of(
    connection: Connection, tables: Tables, table_name: str, row_key: str
) -> GroupSummary | None:
    """Return the group that a row is in; None if it is in none."""
    members = view(tables, "duplicate_members", "table_name", "group_id", "row_key")
    groups = view(tables, "duplicate_groups", *_GROUP_COLUMNS)
    group_id = select(members.c.group_id).where(
        members.c.table_name == table_name, members.c.row_key == row_key
    )
    found = connection.execute(group_id).scalar()
    if found is None:
        return None
    query = select(*groups.c).where(groups.c.table_name == table_name, groups.c.group_id == found)
    row = connection.execute(query).first()
    return None if row is None else _group(row)


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


def _named_links(tables: Tables) -> Select[Any]:
    links, names = exact_links(tables), confirmed_pairs(tables).selected_columns.keys()
    named = (value.label(name) for value, name in zip(links.selected_columns, names, strict=True))
    return links.with_only_columns(*named)


_PARTS: tuple[Callable[[Tables], Select[Any]], ...] = (confirmed_pairs, _named_links)


def _pairs(pairs: Subquery, wanted: PairFilter) -> Select[Any]:
    query = select(*pairs.c).order_by(pairs.c.key_a, pairs.c.key_b)
    if wanted.kinds is not None:
        query = query.where(pairs.c.kind.in_(wanted.kinds))
    if wanted.other_place is not None:
        flag = type_coerce(pairs.c.other_place, Boolean)
        query = query.where(flag == (true() if wanted.other_place else false()))
    return query


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


def _group(row: Any) -> GroupSummary:
    flags = bool(row.is_loose), bool(row.is_abridged)
    return GroupSummary(row.group_id, int(row.size), row.representative_key, *flags)
