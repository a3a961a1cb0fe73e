"""Whether an abridged group stays connected without some of its rows.

Of an abridged group only the pairs that connect it are stored. Without some of its rows it falls into parts
by these pairs. Each part has a row that was in a stored pair with a row that is gone. So the group stays
connected if, for each set of rows that are gone and were connected by stored pairs, the former neighbours of
the set are connected by other pairs. The rest of the group need not be known for that.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from db_dedup.flow.matching.regrouping import PairIds, ordered_ids


@dataclass(frozen=True)
class Gap:
    """Rows that a group has lost and that were connected by stored pairs.

    Attributes:
        lost: their ids.
        neighbours: ids of the other rows of the group that were in a stored pair with one of them.
    """

    lost: frozenset[int]
    neighbours: frozenset[int]


def find_gaps(lost: Collection[int], pairs: Iterable[PairIds]) -> list[Gap]:
    """Return what a group has lost, without the sets of rows that had one neighbour or none.

    Args:
        lost: ids of the rows that the group has lost.
        pairs: the stored pairs of these rows.
    """
    near, all_lost = _neighbours(pairs), set(lost)
    among_lost = {member: near[member] & all_lost for member in all_lost}
    gaps, seen = [], set[int]()
    for row in sorted(lost):
        if row not in seen:
            together = _reached(row, among_lost)
            seen |= together
            around = frozenset().union(*(near[member] for member in together)) - together
            if len(around) > 1:
                gaps.append(Gap(frozenset(together), around))
    return gaps


def bridge(gap: Gap, substitutes: Collection[int], pairs: Iterable[PairIds]) -> list[PairIds] | None:
    """Return pairs that connect the neighbours of a gap, no more than needed; None if these pairs do not.

    Args:
        gap: the gap.
        substitutes: ids of rows that may be between two neighbours. They must differ from gap to gap: with
            a common one, the pairs of two gaps could be more than are needed.
        pairs: duplicate pairs; those with other rows are not used.
    """
    allowed = gap.neighbours.union(substitutes)
    near = _neighbours(pair for pair in pairs if allowed.issuperset(pair))
    first = min(gap.neighbours)
    before = _tree(first, near)
    if not gap.neighbours <= before.keys():
        return None
    used: set[int] = {first}
    for neighbour in gap.neighbours:
        row = neighbour
        while row not in used:
            used.add(row)
            row = before[row]
    return [ordered_ids((row, before[row])) for row in sorted(used) if row != first]


def _neighbours(pairs: Iterable[PairIds]) -> defaultdict[int, set[int]]:
    near: defaultdict[int, set[int]] = defaultdict(set)
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    return near


def _reached(first: int, near: Mapping[int, set[int]]) -> set[int]:
    return set(_tree(first, near))


def _tree(first: int, near: Mapping[int, set[int]]) -> dict[int, int]:
    """Return each row that is connected with the first -> the row before it on a shortest way."""
    before, level = {first: first}, [first]
    while level:
        following = []
        for row in level:
            for other in sorted(near.get(row, ())):
                if other not in before:
                    before[other] = row
                    following.append(other)
        level = following
    return before
