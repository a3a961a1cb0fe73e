"""Abridged groups that keep their representative and nearly all of their rows, and need not be loaded whole.

Such a group may have many thousand rows, of which a batch changes some. Two things must be known of the
others: that they stay connected, and whether one of them is not similar to the representative. A few of them
show both. The rest is neither loaded nor compared.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.embedded.increment.pairs import BatchPairs, having, pair_ids
from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.flow.matching.groups import connected
from db_dedup.flow.matching.reconnection import Gap, bridge, find_gaps
from db_dedup.flow.matching.regrouping import PairIds
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store import neighbours
from db_dedup.store.labels import read_rejected
from db_dedup.store.pairs import StoredPairs, read_linked_ids

# To connect a group without some deleted rows costs about as much for each as to match 200 of its rows again.
_LEAST_LOST: Final = 8
_ROWS_A_LOSS: Final = 200
# Most lost rows have few neighbours, and then each is compared with each.
_COMPARED_WITH_ALL: Final = 16
# To search one row takes as long as to match some fifty rows of a group again.
_LEAST_SEARCHED: Final = 8
_ROWS_A_SEARCH: Final = 50
_COMPARED_FIRST: Final = 8


@dataclass(frozen=True)
class Parts:
    """The parts that an abridged group falls into by its stored pairs, without the rows it has lost.

    Attributes:
        ids: int64[n], of the rows that it keeps, ascending.
        numbers: int64[n], the part of each row: below zero, so that no row has this number.
        split_off: ids of the rows of parts that no pair connects with the representative.
    """

    ids: NDArray[np.int64]
    numbers: NDArray[np.int64]
    split_off: frozenset[int]


@dataclass(frozen=True)
class PartialGroup:
    """An abridged group of which some rows are loaded, the representative among them.

    Attributes:
        id: of the representative.
        lost: ids of canonical rows that it has lost; some may be found to be members again.
        is_loose: whether some row that has not changed is not similar to the representative.
        bridges: pairs that connect the former neighbours of the lost rows.
        parts: the parts of the group where such pairs were not enough; None where it is one part.
    """

    id: int
    lost: frozenset[int]
    is_loose: bool
    bridges: Collection[PairIds] = ()
    parts: Parts | None = None

    @property
    def split_off(self) -> frozenset[int]:
        """The ids of the rows that are no longer connected with the representative."""
        return frozenset() if self.parts is None else self.parts.split_off

    def part_of(self, row_id: int) -> int | None:
        """Return the number of the part that a row is in; None if it has split off, or no pair has it."""
        if self.parts is None:
            return self.id
        place = int(np.searchsorted(self.parts.ids, row_id))
        if row_id in self.split_off or place == self.parts.ids.size or self.parts.ids[place] != row_id:
            return None
        return int(self.parts.numbers[place])


@dataclass(frozen=True)
class LostRows:
    """The canonical rows that abridged groups have lost in a batch.

    Attributes:
        of_group: group -> ids of the rows.
        substitutes: id of a lost row -> ids of the searched rows that may take its place: itself, and the
            row that has its text now.
    """

    of_group: Mapping[int, frozenset[int]]
    substitutes: Mapping[int, Collection[int]]

    @classmethod
    def find(
        cls,
        scope: BatchScope,
        abridged: Collection[int],
        lost: Sequence[AnswerRow],
        searched: Collection[int],
    ) -> "LostRows":
        """Return the rows among `lost`, as they were stored, that were in abridged groups."""
        of_group: dict[int, set[int]] = {}
        for row in lost:
            if row.group_id in abridged and row.group_id is not None:
                of_group.setdefault(row.group_id, set()).add(row.id)
        ids = {row.id for row in lost}
        with_text = {scope.rows[i].digest: i for i in searched if i not in ids}
        substitutes = {
            row.id: {row.id, with_text.get(row.digest, row.id)}.intersection(searched) for row in lost
        }
        return cls({group: frozenset(rows) for group, rows in of_group.items()}, substitutes)


def partial_group(
    scope: BatchScope, pairs: BatchPairs, group_id: int, was_loose: bool, lost: LostRows
) -> PartialGroup | None:
    """Return an abridged group that need not be loaded whole; None if it must.

    Args:
        scope: the batch, with the representative of the group, which has not changed.
        pairs: of the batch; pairs that connect the group are added.
        group_id: of the group.
        was_loose: whether it was loose before the batch.
        lost: the rows that are lost.
    """
    group = PartialGroup(group_id, lost.of_group.get(group_id, frozenset()), was_loose)
    if len(group.lost) > max(_LEAST_LOST, (scope.rows[group_id].group_size or 0) // _ROWS_A_LOSS):
        return None
    if group.lost:
        connected_group = _connected(scope, pairs, group, lost)
        if connected_group is None:
            return None
        group = connected_group
        if was_loose:
            group = replace(group, is_loose=_is_still_loose(scope, pairs, group))
    return group


def _connected(
    scope: BatchScope, pairs: BatchPairs, group: PartialGroup, lost: LostRows
) -> PartialGroup | None:
    """Return the group with what connects it without the lost rows; None if it must be matched again."""
    gaps = find_gaps(group.lost, pair_ids(pairs.old.only(having(pairs.old, group.lost))))
    bridges = _bridges(gaps, pairs, lost)
    if None in bridges:
        _compare_neighbours(
            scope, pairs, [gap for gap, found in zip(gaps, bridges, strict=True) if found is None]
        )
        bridges = _bridges(gaps, pairs, lost)
    if None not in bridges:
        return replace(group, bridges={pair for found in bridges if found for pair in found})
    parts = _find_parts(scope, pairs, group, gaps)
    return None if parts is None else replace(group, parts=parts)


def _bridges(gaps: Sequence[Gap], pairs: BatchPairs, lost: LostRows) -> list[list[PairIds] | None]:
    """Return for each gap the pairs that connect its neighbours; None where the pairs do not."""
    around = frozenset().union(*(gap.neighbours for gap in gaps))
    found = pairs.found
    near = pair_ids(found.only(having(found, around))) if gaps else []
    return [
        bridge(gap, frozenset().union(*(lost.substitutes[row] for row in gap.lost)), near) for gap in gaps
    ]


def _compare_neighbours(scope: BatchScope, pairs: BatchPairs, gaps: Sequence[Gap]) -> None:
    """Compare some neighbours of each gap with all others; add their duplicate pairs."""
    wanted = {
        (a, b)
        for gap in gaps
        for a in sorted(gap.neighbours)[:_COMPARED_WITH_ALL]
        for b in gap.neighbours
        if a < b
    }
    first = sorted({a for a, _ in wanted})
    rows = neighbours.rows_of_ids(
        scope.connection, scope.store, sorted({row for pair in wanted for row in pair})
    )
    scope.rows.load(rows)
    place = {row_id: number for number, row_id in enumerate(first)}
    which, ids = np.array([(place[a], b) for a, b in sorted(wanted)], np.int64).T
    pairs.add(pairs.between([scope.rows[i] for i in first], which, ids))


def _find_parts(
    scope: BatchScope, pairs: BatchPairs, group: PartialGroup, gaps: Sequence[Gap]
) -> Parts | None:
    """Return the parts of a group, after a search for the pairs between them.

    The rows that have lost a neighbour are compared with the representative, which is similar to most rows of
    many groups. Then the rows of all parts but the largest are searched until each part is connected with it,
    or has no row left to search.

    Returns:
        None if the largest part is without the representative, or too many rows would have to be searched.
    """
    around = sorted({row for gap in gaps for row in gap.neighbours})
    left, right = read_linked_ids(scope.connection, scope.store, group.id)
    affected = np.array(sorted(pairs.affected), np.int64)
    stays = ~(np.isin(left, affected) | np.isin(right, affected))
    left, right = left[stays], right[stays]
    near = pairs.old.only(having(pairs.old, group.lost))
    alone = np.setdiff1d(np.concatenate([near.id_a, near.id_b, [group.id]]), affected)
    ids = np.unique(np.concatenate([left, right, alone]))
    pairs.add(_between_one(scope, pairs, group.id, np.intersect1d(around, ids)))
    searched: set[int] = set()
    at_once = 1
    while True:
        whole = _components(ids, np.append(left, pairs.found.id_a), np.append(right, pairs.found.id_b))
        is_rest = whole != np.argmax(np.bincount(whole))
        asked = list(_next_asked(ids[is_rest], whole[is_rest], searched, around, at_once))
        if not asked:
            break
        searched.update(asked)
        if len(searched) > max(_LEAST_SEARCHED, ids.size // _ROWS_A_SEARCH):
            return None
        at_once *= 2
        scope.rows.load(neighbours.rows_of_ids(scope.connection, scope.store, asked))
        pairs.search([scope.rows[i] for i in asked])
    if is_rest[np.searchsorted(ids, group.id)]:
        return None
    return Parts(ids, -1 - _components(ids, left, right), frozenset(ids[is_rest].tolist()))


def _between_one(scope: BatchScope, pairs: BatchPairs, row_id: int, others: NDArray[np.int64]) -> StoredPairs:
    """Return the pairs of a row with some others."""
    others = others[others != row_id]
    return pairs.between([scope.rows[row_id]], np.zeros(others.size, np.int64), others)


def _components(
    ids: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return int64[n]: a number from 0 on for each row, the same for rows that pairs connect."""
    nodes = np.unique(np.concatenate([ids, left, right]))
    ends = (np.searchsorted(nodes, side).astype(np.int32) for side in (left, right))
    return connected(nodes.size, *ends)[np.searchsorted(nodes, ids)].astype(np.int64)


def _next_asked(
    ids: NDArray[np.int64],
    parts: NDArray[np.int64],
    searched: Collection[int],
    first: Collection[int],
    at_once: int,
) -> Iterator[int]:
    """Yield some rows of each part that have not been searched, those that lost a neighbour first."""
    first = set(first)
    of_part: dict[int, list[int]] = {}
    for row_id, part in zip(ids.tolist(), parts.tolist(), strict=True):
        if row_id not in searched:
            of_part.setdefault(part, []).append(row_id)
    for rows in of_part.values():
        rows.sort(key=lambda row_id: (row_id not in first, row_id))
        yield from rows[:at_once]


def _is_still_loose(scope: BatchScope, pairs: BatchPairs, group: PartialGroup) -> bool:
    """Return whether some row of a group that has not changed is not similar to the representative.

    The rows that are loaded are compared first, and then the others, those with the most distant fingerprint
    first.
    """
    out = pairs.affected | group.split_off | {group.id}
    loaded = [row for row in scope.canonical_rows() if row.group_id == group.id and row.id not in out]
    some = np.array([row.id for row in loaded], np.int64)
    values = np.array([row.fingerprint or 0 for row in loaded], np.uint64)
    representative = scope.rows[group.id]
    value = np.uint64(representative.fingerprint or 0)
    some = some[np.argsort(-np.bitwise_count(values ^ value).astype(np.int64), kind="stable")]
    if _has_unlike(scope, pairs, representative, some[:_COMPARED_FIRST]):
        return True
    ids, values = neighbours.read_members(scope.connection, scope.store, group.id)
    order = np.argsort(-np.bitwise_count(values ^ value).astype(np.int64), kind="stable")
    ids = ids[order]
    ids = ids[~np.isin(ids, np.array(sorted(out), np.int64))]
    first, count = 0, _COMPARED_FIRST
    while first < ids.size:
        if _has_unlike(scope, pairs, representative, ids[first : first + count]):
            return True
        first, count = first + count, 2 * count
    return False


def _has_unlike(
    scope: BatchScope, pairs: BatchPairs, representative: AnswerRow, ids: NDArray[np.int64]
) -> bool:
    """Return whether one of these rows is not similar to the representative.

    A row that cannot be compared, because its text has changed since, does not count: its change is queued.
    """
    if not ids.size:
        return False
    found = _between_one(scope, pairs, representative.id, ids)
    unlike = np.setdiff1d(ids, np.concatenate([found.id_a, found.id_b])).tolist()
    if unlike and scope.texts.is_left_out(representative):
        return True
    rows = neighbours.rows_of_ids(scope.connection, scope.store, unlike)
    return not all(map(scope.texts.is_left_out, rows))


def load_rejected(scope: BatchScope, groups: Collection[int]) -> None:
    """Load the rows of these groups that are in a pair that people have labelled as no duplicates."""
    rejected = read_rejected(scope.connection, scope.store.tables, scope.store.table_id)
    digests = sorted({digest for pair in rejected for digest in pair})
    rows = neighbours.canonical_rows(scope.connection, scope.store, digests)
    scope.rows.load(row for row in rows if row.group_id in groups)
