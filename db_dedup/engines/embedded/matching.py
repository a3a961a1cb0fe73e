"""Steps 5 to 7 put together for a whole table: copies, candidates, confirmed pairs, groups.

First the groups, exactly, without looking at pairs of rows that are already joined; then, group by group, all
pairs. A cluster of near-equal rows therefore costs its size, not its square, and a group past the limit keeps
only the pairs that connect it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.embedded import _confirm as kernels
from db_dedup.engines.embedded._join_features import index_rarest, join_indexed
from db_dedup.engines.embedded._join_runs import join_runs
from db_dedup.engines.embedded.rejections import NONE_REJECTED, pack, unpack
from db_dedup.flow.candidates import BLOCK_SHIFTS, candidate_pairs
from db_dedup.flow.features import Features
from db_dedup.flow.groups import flatten, group_sizes
from db_dedup.flow.similarity import MEASURES
from db_dedup.flow.sketches import Sketches, entries, runs_of_equal
from db_dedup.progress import Progress

NO_ROW = -1
_ROWS_A_BLOCK = 64
# Of longer runs only so many comparisons are made for each row, before its features are looked for.
_LONGEST_COMPARED = 5_000
_COMPARISONS_A_ROW = 200
_ROWS_A_SEARCH = 10_000
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that small numbers become distinct large ones


@dataclass(frozen=True)
class Table:
    """The rows of a table as the matching needs them, numbered in the order they were received.

    Attributes:
        fingerprints: uint64[n].
        has_fingerprint: bool[n].
        digests: uint64[n, 2], the two halves of each digest; all zero says nothing.
        within: int32[n], equal where rows agree in the `within` columns.
        features: of the n rows, for the similarity, in any order.
        places: int64[n], where each row's features stand.
        sketches: of rows, in any order; of none where only the fingerprints propose.
        sketch_places: int64[n], where each row's sketch stands; -1 for none.
        rejected: int64[r], pairs of rows that are no duplicates whatever the rule says, packed as by
            `rejections.pack`.
    """

    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    digests: NDArray[np.uint64]
    within: NDArray[np.int32]
    features: Features
    places: NDArray[np.int64]
    sketches: Sketches
    sketch_places: NDArray[np.int64]
    rejected: NDArray[np.int64] = field(default_factory=NONE_REJECTED.copy)


@dataclass(frozen=True)
class MatchRule:
    """When two rows are a duplicate pair: near enough or with sketches that meet, and then similar enough.

    `measure` None: being proposed is enough.
    """

    radius: int
    measure: str | None
    threshold: float
    abridge_above: int


@dataclass(frozen=True)
class Pairs:
    """p pairs of rows, left received before right; similarity is NaN where it was not computed."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    distances: NDArray[np.int16]
    similarities: NDArray[np.float64]


@dataclass(frozen=True)
class Matches:
    """The answer for n rows.

    Attributes:
        copy_of: int32[n], the first-received row with the same digest, or -1.
        pairs: between rows that are no copies.
        group_of: int32[n], the representative's number, or -1 for a row that duplicates nothing.
        is_loose: bool[n], True at representatives that some member, copies aside, is not similar to, and of
            groups that hold both rows of a rejected pair.
        is_abridged: bool[n], True at representatives whose group keeps only the pairs that connect it.
    """

    copy_of: NDArray[np.int32]
    pairs: Pairs
    group_of: NDArray[np.int32]
    is_loose: NDArray[np.bool_]
    is_abridged: NDArray[np.bool_]


def match_table(table: Table, rule: MatchRule, progress: Progress) -> Matches:
    """Find every duplicate pair and group of a table."""
    copy_of = find_copies(table.digests)
    heads = _heads(table, copy_of)
    search = _Search(table, rule, heads)
    connecting = search.connect(progress)
    roots = search.parents
    sizes = group_sizes(roots)
    is_big = sizes > rule.abridge_above
    pairs = search.all_pairs(sizes, is_big, connecting, progress)
    is_loose = search.loose_groups(sizes, is_big, pairs)

    count = table.fingerprints.size
    group_of = np.full(count, NO_ROW, np.int32)
    in_pair = sizes[roots] > 1
    group_of[heads[in_pair]] = heads[roots[in_pair]]
    copies = np.flatnonzero(copy_of != NO_ROW)
    classes = copy_of[copies]
    alone = classes[group_of[classes] == NO_ROW]
    group_of[alone] = alone
    group_of[copies] = group_of[classes]
    return Matches(
        copy_of,
        Pairs(heads[pairs.left], heads[pairs.right], pairs.distances, pairs.similarities),
        group_of,
        _spread(is_loose, heads, count),
        _spread(is_big, heads, count),
    )


def all_pairs(table: Table, rule: MatchRule) -> Iterator[Pairs]:
    """Every duplicate pair of rows none of which is a copy, a block of rows at a time: they may be many."""
    rows = _heads(table, np.full(table.digests.shape[0], NO_ROW, np.int32))
    search = _Search(table, rule, rows)
    for first in range(0, rows.size, _ROWS_A_BLOCK):
        found = search.pairs_of(first, min(first + _ROWS_A_BLOCK, rows.size))
        yield Pairs(rows[found.left], rows[found.right], found.distances, found.similarities)


def rows_with_candidates(table: Table, radius: int, progress: Progress) -> NDArray[np.bool_]:
    """bool[n]: the rows, copies aside, that the fingerprints alone would join with another row.

    Every row of a candidate pair is among them. No features are needed.
    """
    heads = _heads(table, find_copies(table.digests))
    search = _Search(table, MatchRule(radius, None, 0, 0), heads)
    search.connect(progress, "candidates")
    return _spread(group_sizes(search.parents)[search.parents] > 1, heads, table.fingerprints.size)


def find_copies(digests: NDArray[np.uint64]) -> NDArray[np.int32]:
    """int32[n]: the first row with the same digest, -1 for that one itself and for silent rows."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    ordered = digests[order]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    # lexsort is stable, so the first of a run is the first received.
    heads = order[is_first][np.cumsum(is_first) - 1]
    copy_of = np.full(order.size, NO_ROW, np.int32)
    is_copy = ~is_first & np.any(ordered != 0, axis=1)
    copy_of[order[is_copy]] = heads[is_copy]
    return copy_of


def _heads(table: Table, copy_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """The rows that take part in pairs."""
    return np.flatnonzero((copy_of == NO_ROW) & table.has_fingerprint).astype(np.int32)


class _Search:
    """The search among rows that are no copies; numbers here are positions among these."""

    def __init__(self, table: Table, rule: MatchRule, heads: NDArray[np.int32]) -> None:
        self._rule = rule
        self._values = table.fingerprints[heads]
        self._sketches, self._sketch_places = table.sketches, table.sketch_places[heads]
        self._within_values = table.within[heads].astype(np.uint64) * _SPREAD
        self._proposal = (
            self._values,
            rule.radius,
            table.sketches.starts,
            table.sketches.values,
            self._sketch_places,
        )
        self.parents = np.arange(heads.size, dtype=np.int32)
        self._rejected = _among(table.rejected, heads)
        self._confirm = (
            -1 if rule.measure is None else MEASURES[rule.measure],
            rule.threshold,
            table.within[heads],
            table.places[heads],
            table.features.starts,
            table.features.hashes,
            table.features.weights,
            self._rejected,
        )

    def connect(
        self, progress: Progress, step: str = "matching"
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Join all groups; gives the pairs that did, one fewer than each group has rows."""
        progress.start(step, None)
        found = [self._join(*self._neighbours(shift)) for shift in BLOCK_SHIFTS]
        for left, right in candidate_pairs(self._values, self._rule.radius, self.parents):
            found.append(self._join(left, right))
            progress.advance(left.size)
        found += self._join_sharing(progress)
        progress.finish()
        return np.concatenate([left for left, _ in found]), np.concatenate([right for _, right in found])

    def _neighbours(self, shift: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Pairs that stand beside each other when sorted from some block on: cheap, and they join most of a
        large cluster before the complete search starts."""
        values = self._values
        rotated = values if shift == 0 else (values << np.uint64(shift)) | (values >> np.uint64(64 - shift))
        order = np.argsort(rotated, kind="stable").astype(np.int32)
        left, right = order[:-1], order[1:]
        is_near = np.bitwise_count(values[left] ^ values[right]) <= self._rule.radius
        return left[is_near], right[is_near]

    def _join(
        self, left: NDArray[np.int32], right: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        joined = kernels.join_confirmed(left, right, self.parents, self._confirm)
        flatten(self.parents)
        return left[joined], right[joined]

    def _join_sharing(self, progress: Progress) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Join the rows whose sketches meet and that agree in `within`."""
        if not self._sketches.values.size:
            return
        in_long_runs = np.zeros(self.parents.size, np.bool_)
        budget = (_LONGEST_COMPARED, _COMPARISONS_A_ROW)
        for values, rows in entries(self._sketches, self._sketch_places, self._within_values):
            left, right = join_runs(
                *runs_of_equal(values, rows),
                budget,
                in_long_runs,
                self._proposal,
                self.parents,
                self._confirm,
            )
            progress.advance(left.size)
            yield left, right
        index = index_rarest(np.flatnonzero(in_long_runs).astype(np.int32), self.parents, self._confirm)
        for first in range(0, index[0].size, _ROWS_A_SEARCH):
            last = min(first + _ROWS_A_SEARCH, index[0].size)
            left, right = join_indexed(first, last, index, self._proposal, self.parents, self._confirm)
            progress.advance(left.size)
            yield left, right
        flatten(self.parents)

    def all_pairs(
        self,
        sizes: NDArray[np.int64],
        is_big: NDArray[np.bool_],
        connecting: tuple[NDArray[np.int32], NDArray[np.int32]],
        progress: Progress,
    ) -> Pairs:
        """Every confirmed pair of the groups up to the limit, and what connects the others."""
        roots = self.parents
        members = np.flatnonzero((sizes[roots] > 1) & ~is_big[roots]).astype(np.int32)
        members = members[np.argsort(roots[members], kind="stable")]
        bounds = [*np.flatnonzero(np.diff(roots[members], prepend=-1)).tolist(), members.size]
        progress.start("pairs", int(members.size))
        parts = []
        for first, last in _slices(bounds):
            parts.append(
                kernels.pairs_within_groups(members[first:last], roots, self._proposal, self._confirm)
            )
            progress.advance(last - first)
        progress.finish()
        parts.append(self._connecting_pairs(connecting, is_big))
        return Pairs(*(np.concatenate([part[i] for part in parts]) for i in range(4)))

    def pairs_of(self, first: int, last: int) -> Pairs:
        """The pairs of these rows with each other and with all after them."""
        return Pairs(*kernels.pairs_of_some(first, last, self._values.size, self._proposal, self._confirm))

    def _connecting_pairs(
        self, connecting: tuple[NDArray[np.int32], NDArray[np.int32]], is_big: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16], NDArray[np.float64]]:
        left, right = connecting
        is_kept = is_big[self.parents[left]]
        left, right = left[is_kept], right[is_kept]
        left, right = np.minimum(left, right), np.maximum(left, right)
        distances = np.bitwise_count(self._values[left] ^ self._values[right]).astype(np.int16)
        return left, right, distances, kernels.confirmed_similarities(left, right, self._confirm)

    def loose_groups(
        self, sizes: NDArray[np.int64], is_big: NDArray[np.bool_], pairs: Pairs
    ) -> NDArray[np.bool_]:
        """bool[h], True at the root of a group with a member that is no duplicate of the root, or with both
        rows of a rejected pair."""
        roots = self.parents
        similar = np.bincount(
            pairs.left[(roots[pairs.left] == pairs.left) & ~is_big[roots[pairs.left]]], minlength=roots.size
        )
        of_big = np.flatnonzero(is_big[roots] & (roots != np.arange(roots.size))).astype(np.int32)
        duplicates_root = kernels.are_duplicates(roots[of_big], of_big, self._proposal, self._confirm)
        similar += np.bincount(roots[of_big[duplicates_root]], minlength=roots.size)
        loose: NDArray[np.bool_] = (sizes > 1) & (similar < sizes - 1)
        apart = roots[unpack(self._rejected)]
        loose[apart[apart[:, 0] == apart[:, 1], 0]] = True
        return loose


def _slices(bounds: list[int], at_least: int = 20_000) -> list[tuple[int, int]]:
    """Whole groups, about so many rows at a time."""
    slices, first = [], 0
    for bound in bounds:
        if bound - first >= at_least or (bound == bounds[-1] and bound > first):
            slices.append((first, bound))
            first = bound
    return slices


def _among(rejected: NDArray[np.int64], heads: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rejected pairs both rows of which take part in pairs, by their positions among these."""
    rows = unpack(rejected)
    places = np.searchsorted(heads, rows)
    is_head = (
        heads[np.minimum(places, heads.size - 1)] == rows if heads.size else np.zeros_like(rows, np.bool_)
    )
    return pack(places[is_head.all(axis=1)])


def _spread(flags: NDArray[np.bool_], heads: NDArray[np.int32], count: int) -> NDArray[np.bool_]:
    spread = np.zeros(count, np.bool_)
    spread[heads] = flags
    return spread
