"""The groups of one table for people who review them: in pages, in several orders, with what they contain.

Every query begins at an index and reads a bounded number of rows, so its time does not grow with the number
of groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Boolean, ColumnElement, Connection, case, false, func, or_, select, true, type_coerce

from db_dedup.dialects.batches import batches
from db_dedup.records.fingerprints import DigestPair
from db_dedup.records.kinds import KINDS, Kind
from db_dedup.store.fingerprints import FingerprintStore

LARGE: Final = 200
"""Rows: of a larger group only so many are looked at."""
_KEYS_A_QUERY: Final = 500


@dataclass(frozen=True)
class ReviewedGroup:
    """A group in a list.

    Attributes:
        id: of the representative's fingerprint.
        newest: the highest id of a fingerprint of the group, where the list is ordered by it; else 0.
        received: the order value of the representative, as a text that sorts.
    """

    id: int
    newest: int
    group_id: str
    size: int
    is_loose: bool
    is_abridged: bool
    received: str | None


class SizePlace(NamedTuple):
    """The place of a group in the order by size, the largest first; of equal ones by group id, backwards."""

    size: int
    group_id: str


class GroupContents(NamedTuple):
    """The kinds of a group's pairs, and whether a pair is of two places."""

    kinds: frozenset[Kind]
    other_place: bool


class GroupTotals(NamedTuple):
    """How many groups a table has, how many rows are in them, and how many groups are loose."""

    groups: int
    rows: int
    loose: int


def read_totals(connection: Connection, store: FingerprintStore) -> GroupTotals:
    """Return the totals of a table, from the index of group sizes alone."""
    c = store.tables.fingerprint.c
    loose = case((type_coerce(c.is_loose, Boolean).is_(True), 1), else_=0)
    query = select(func.count(), func.coalesce(func.sum(c.group_size), 0), func.coalesce(func.sum(loose), 0))
    row = connection.execute(query.where(store.mine, c.group_size > 0)).one()
    return GroupTotals(*map(int, row))


def read_largest(
    connection: Connection, store: FingerprintStore, after: SizePlace | None, limit: int, loose: bool | None
) -> list[ReviewedGroup]:
    """Return at most `limit` groups after a place, the largest first.

    Args:
        connection: to our tables.
        store: of the table.
        after: None for the first page.
        limit: the most groups.
        loose: only loose groups, or only the others; None for both.
    """
    c = store.tables.fingerprint.c
    # Only what the index has: to look up each of many rows that are not wanted would take a second.
    query = select(*_indexed(c)).where(store.mine, c.group_size > 0)
    if after is not None:
        is_later = or_(c.group_size < after.size, c.row_key < after.group_id)
        query = query.where(c.group_size <= after.size, is_later)
    if loose is not None:
        flag = func.coalesce(type_coerce(c.is_loose, Boolean), false())
        query = query.where(flag == (true() if loose else false()))
    query = query.order_by(c.group_size.desc(), c.row_key.desc()).limit(limit)
    found = connection.execute(query).all()
    received = _order_values(connection, store, [int(row.id) for row in found])
    return [_group(row, 0, received.get(int(row.id))) for row in found]


def read_newest(
    connection: Connection, store: FingerprintStore, before: int | None, limit: int
) -> tuple[list[ReviewedGroup], int | None]:
    """Return groups by the row that was added to them last, the newest first.

    Args:
        connection: to our tables.
        store: of the table.
        before: the place that was returned with the page before; None for the first page.
        limit: how many rows in groups to look at; fewer groups than rows are returned.

    Returns:
        The groups, and the place of the last row that was looked at; None at the end of the table.
    """
    row = store.tables.fingerprint
    query = select(row.c.id, row.c.group_id).where(store.mine, row.c.group_id > 0)
    if before is not None:
        query = query.where(row.c.id < before)
    found = connection.execute(query.order_by(row.c.id.desc()).limit(limit)).all()
    newest = _newest_rows(connection, store, {group for _, group in found})
    wanted = {int(group): int(id_) for id_, group in found if newest.get(int(group)) == int(id_)}
    place = int(found[-1].id) if len(found) == limit else None
    groups = _read_groups(connection, store, wanted)
    return sorted(groups, key=lambda group: -group.newest), place


def read_chosen(connection: Connection, store: FingerprintStore, ids: set[int]) -> list[ReviewedGroup]:
    """Return the groups of these ids, with their newest rows, in no order."""
    return _read_groups(connection, store, _newest_rows(connection, store, ids))


def read_contents(
    connection: Connection, store: FingerprintStore, groups: Sequence[ReviewedGroup]
) -> dict[int, GroupContents]:
    """Return id of a group -> what its pairs are; of a group larger than `LARGE` of its first pairs."""
    kinds: dict[int, set[Kind]] = {group.id: set() for group in groups}
    places: set[int] = set()
    pair = store.tables.pair
    for members in _members(store, groups):
        links = (
            select(members.c.group_id, pair.c.kind, pair.c.other_place)
            .join(pair, pair.c.id_a == members.c.id)
            .distinct()
        )
        for group, kind, other_place in connection.execute(links):
            if kind is not None:
                kinds[int(group)].add(KINDS[kind])
            if other_place:
                places.add(int(group))
        copies = select(members.c.group_id).where(members.c.copy_of > 0).distinct()
        for group in connection.execute(copies).scalars():
            kinds[int(group)].add("copy")
    return {group: GroupContents(frozenset(found), group in places) for group, found in kinds.items()}


def groups_received(
    connection: Connection,
    store: FingerprintStore,
    groups: Sequence[ReviewedGroup],
    since: str | None,
    until: str | None,
) -> set[int]:
    """Return the ids of the groups with a row whose order value is in a range.

    Args:
        connection: to our tables.
        store: of the table.
        groups: to choose from.
        since: the first order value; None for no limit.
        until: the order value after the last one; None for no limit.
    """
    found: set[int] = set()
    for members in _members(store, groups):
        query = select(members.c.group_id).distinct()
        if since is not None:
            query = query.where(members.c.order_value >= since)
        if until is not None:
            query = query.where(members.c.order_value < until)
        found.update(map(int, connection.execute(query).scalars()))
    return found


def read_member_keys(
    connection: Connection, store: FingerprintStore, groups: Sequence[ReviewedGroup]
) -> list[tuple[int, str]]:
    """Return (id of the group, row key) of the members of groups, of each at most `LARGE`."""
    return [
        (int(group), key)
        for members in _members(store, groups)
        for group, key in connection.execute(select(members.c.group_id, members.c.row_key))
    ]


def read_labels_of(
    connection: Connection, store: FingerprintStore, pairs: Iterable[DigestPair]
) -> Mapping[DigestPair, bool]:
    """Return pair of digests -> whether people said duplicates, for those of the pairs that have a label."""
    wanted = set(pairs)
    c = store.tables.verdict.c
    query = select(c.digest_a, c.digest_b, c.is_duplicate).where(c.table_id == store.table_id)
    found: dict[DigestPair, bool] = {}
    for some in batches(sorted({a for a, _ in wanted}), _KEYS_A_QUERY):
        for a, b, is_duplicate in connection.execute(query.where(c.digest_a.in_(some))):
            if (bytes(a), bytes(b)) in wanted:
                found[bytes(a), bytes(b)] = bool(is_duplicate)
    return found


def _members(store: FingerprintStore, groups: Sequence[ReviewedGroup]) -> list[Any]:
    """Subqueries for the members of groups: one for all small groups, one for each large group."""
    row = store.tables.fingerprint
    columns = (row.c.id, row.c.group_id, row.c.row_key, row.c.copy_of, row.c.order_value)
    small = [group.id for group in groups if group.size <= LARGE]
    conditions: list[ColumnElement[bool]] = [
        row.c.group_id.in_(some) for some in batches(small, _KEYS_A_QUERY)
    ]
    found = [select(*columns).where(condition).subquery("member") for condition in conditions]
    for group in groups:
        if group.size > LARGE:
            some_of = select(*columns).where(row.c.group_id == group.id).limit(LARGE)
            found.append(some_of.subquery("member"))
    return found


def _newest_rows(connection: Connection, store: FingerprintStore, groups: set[int]) -> dict[int, int]:
    row = store.tables.fingerprint
    query = select(row.c.group_id, func.max(row.c.id)).group_by(row.c.group_id)
    return {
        int(group): int(newest)
        for some in batches(sorted(groups), _KEYS_A_QUERY)
        for group, newest in connection.execute(query.where(row.c.group_id.in_(some)))
    }


def _read_groups(
    connection: Connection, store: FingerprintStore, newest: Mapping[int, int]
) -> list[ReviewedGroup]:
    """Return the groups of the ids that lead to the ids of their newest rows."""
    c = store.tables.fingerprint.c
    query = select(*_indexed(c), c.order_value).where(store.mine, c.group_size > 0)
    return [
        _group(row, newest[int(row.id)], row.order_value)
        for some in batches(list(newest), _KEYS_A_QUERY)
        for row in connection.execute(query.where(c.id.in_(some)))
    ]


def _order_values(
    connection: Connection, store: FingerprintStore, ids: Sequence[int]
) -> Mapping[int, str | None]:
    c = store.tables.fingerprint.c
    return {
        int(id_): value
        for some in batches(ids, _KEYS_A_QUERY)
        for id_, value in connection.execute(select(c.id, c.order_value).where(c.id.in_(some)))
    }


def _indexed(c: Any) -> list[ColumnElement[Any]]:
    """Return the columns of a group that the index of group sizes has."""
    return [c.id, c.row_key, c.group_size, c.is_loose, c.is_abridged]


def _group(row: Any, newest: int, received: str | None) -> ReviewedGroup:
    flags = bool(row.is_loose), bool(row.is_abridged)
    return ReviewedGroup(int(row.id), newest, row.row_key, int(row.group_size), *flags, received)
