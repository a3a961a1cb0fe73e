"""Form the groups around a change again from the pairs."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from db_dedup.flow.rows.order import Receipt

PairIds = tuple[int, int]


def ordered_ids(pair: PairIds) -> PairIds:
    """Return the pair with the smaller id first."""
    return (min(pair), max(pair))


@dataclass(frozen=True)
class CanonicalRow:
    """A canonical row.

    Attributes:
        received: sorts the row by the order in which the rows were received.
        group_id: the group that the row was in, None if it was in none.
        has_exact_duplicates: whether another row is an exact duplicate of it.
        part: a number of the connected part of its abridged group that the row is in, where other rows of the
            part are not loaded; None where all rows of its group are loaded. No row has this number, but for
            the representative of a group of one part.
    """

    id: int
    received: Receipt
    group_id: int | None
    has_exact_duplicates: bool
    part: int | None = None


@dataclass(frozen=True)
class Group:
    """A group as it is now.

    Attributes:
        representative: the id of the first-received row.
        members: the ids of its canonical rows, as far as they are loaded.
        surplus: the pairs that an abridged group does not keep.
    """

    representative: int
    members: list[int]
    is_loose: bool
    is_abridged: bool
    surplus: list[PairIds]


def regroup(
    rows: Collection[CanonicalRow],
    pairs: Collection[PairIds],
    searched: Collection[int],
    abridged: Mapping[int, bool],
    abridge_above: int,
    rejected: Collection[PairIds] = (),
    bridges: Collection[PairIds] = (),
) -> list[Group]:
    """Return the connected components of these rows; a row without any duplicate is in none.

    Args:
        rows: the rows, with all other canonical rows of the groups that they were in. Of an abridged group
            that stays as it is the representative and some rows are enough: they have a `part`.
        pairs: every pair among the rows that was stored or found; of rows that have a part, those found.
        searched: ids of the rows whose pairs have just been searched, so that all their pairs are known.
        abridged: id of a former abridged group -> whether it is loose by its rows that have not changed.
        abridge_above: a group with more rows than this keeps only the pairs that connect it.
        rejected: pairs that people have labelled as no duplicates, each in any order. A group with both rows
            of such a pair is loose.
        bridges: pairs, each the smaller id first, that an abridged group keeps in any case.
    """
    parents = {row.id: row.id for row in rows}
    parents |= {row.part: row.part for row in rows if row.part is not None}
    kept = {pair for pair in sorted(pairs) if bridges and ordered_ids(pair) in bridges}
    connecting = {pair for pair in sorted(kept) if _join(parents, *pair)}
    for row in rows:
        if row.part is not None:
            _join(parents, row.part, row.id)
    connecting |= {pair for pair in sorted(pairs) if _join(parents, *pair)}
    components: dict[int, list[CanonicalRow]] = {}
    for row in rows:
        components.setdefault(_root(parents, row.id), []).append(row)
    pairs_of: dict[int, list[PairIds]] = {}
    for pair in pairs:
        pairs_of.setdefault(_root(parents, pair[0]), []).append(pair)
    known, were_searched = set(pairs), frozenset(searched)
    contradicted = {_root(parents, a) for a, b in rejected if _root(parents, a) == _root(parents, b)}
    groups = []
    for root, members in components.items():
        if len(members) == 1 and not members[0].has_exact_duplicates and members[0].part is None:
            continue
        members.sort(key=lambda row: row.received)
        is_abridged = len(members) > abridge_above or any(row.part is not None for row in members)
        surplus = [pair for pair in pairs_of.get(root, ()) if pair not in connecting] if is_abridged else []
        is_loose = root in contradicted or _is_loose(members, known, were_searched, abridged)
        ids = [row.id for row in members]
        groups.append(Group(ids[0], ids, is_loose, is_abridged, surplus))
    return groups


def _is_loose(
    members: list[CanonicalRow], pairs: set[PairIds], searched: AbstractSet[int], abridged: Mapping[int, bool]
) -> bool:
    """Return whether some member is no duplicate of the first one."""
    first, *others = members
    if first.group_id is not None and abridged.get(first.group_id):
        return True

    def is_known_similar(other: CanonicalRow) -> bool:
        if (first.id, other.id) in pairs or (other.id, first.id) in pairs:
            return True
        # In an abridged group that was not loose every row duplicates the representative, stored or not.
        is_of_old = first.group_id is not None and first.group_id == other.group_id
        return is_of_old and first.group_id in abridged and searched.isdisjoint((first.id, other.id))

    return not all(map(is_known_similar, others))


def _join(parents: dict[int, int], a: int, b: int) -> bool:
    root_a, root_b = _root(parents, a), _root(parents, b)
    parents[max(root_a, root_b)] = min(root_a, root_b)
    return root_a != root_b


def _root(parents: dict[int, int], row: int) -> int:
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row
