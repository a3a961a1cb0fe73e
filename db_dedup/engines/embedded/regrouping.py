"""The groups around a change, made anew from the pairs: pure, no database."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from db_dedup.store.ordering import Receipt

PairIds = tuple[int, int]


@dataclass(frozen=True)
class Head:
    """A row that is no copy.

    Attributes:
        group_id: the group it was in, None for none.
        has_copies: some row is a copy of it.
    """

    id: int
    received: Receipt
    group_id: int | None
    has_copies: bool


@dataclass(frozen=True)
class Group:
    """A group as it is now. `surplus` are pairs that an abridged group does without."""

    representative: int
    members: list[int]
    is_loose: bool
    is_abridged: bool
    surplus: list[PairIds]


def regroup(
    heads: Collection[Head],
    pairs: Collection[PairIds],
    searched: Collection[int],
    abridged: Mapping[int, bool],
    abridge_above: int,
    rejected: Collection[PairIds] = (),
) -> list[Group]:
    """The connected components of these rows, those alone and without copies left out.

    Args:
        heads: rows, with every other row of the groups that they were in.
        pairs: every stored pair among them.
        searched: rows whose pairs are complete, whatever group they were in: they have just been searched.
        abridged: the groups of old that were abridged -> whether they were loose. None of their rows is gone
            or searched: such a group must be matched anew, for what connected it may be gone.
        abridge_above: a group with more rows than this keeps only the pairs that connect it.
        rejected: pairs that people have rejected, in any order; a group that holds both rows of one is loose.
    """
    parents = {head.id: head.id for head in heads}
    connecting = {pair for pair in sorted(pairs) if _join(parents, *pair)}
    components: dict[int, list[Head]] = {}
    for head in heads:
        components.setdefault(_root(parents, head.id), []).append(head)
    pairs_of: dict[int, list[PairIds]] = {}
    for pair in pairs:
        pairs_of.setdefault(_root(parents, pair[0]), []).append(pair)
    known = set(pairs)
    contradicted = {_root(parents, a) for a, b in rejected if _root(parents, a) == _root(parents, b)}
    groups = []
    for root, members in components.items():
        if len(members) == 1 and not members[0].has_copies:
            continue
        members.sort(key=lambda head: head.received)
        is_abridged = len(members) > abridge_above
        surplus = [pair for pair in pairs_of.get(root, ()) if pair not in connecting] if is_abridged else []
        is_loose = root in contradicted or _is_loose(members, known, searched, abridged)
        ids = [head.id for head in members]
        groups.append(Group(ids[0], ids, is_loose, is_abridged, surplus))
    return groups


def _is_loose(
    members: list[Head], pairs: set[PairIds], searched: Collection[int], abridged: Mapping[int, bool]
) -> bool:
    """Whether some member is no duplicate of the first one."""
    first, *others = members
    if first.group_id is not None and abridged.get(first.group_id):
        return True

    def is_known_similar(other: Head) -> bool:
        if (first.id, other.id) in pairs or (other.id, first.id) in pairs:
            return True
        # In an abridged group that was not loose every row is a duplicate of its representative, unstored.
        is_of_old = first.group_id is not None and first.group_id == other.group_id
        return is_of_old and first.group_id in abridged and not {first.id, other.id} & set(searched)

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
