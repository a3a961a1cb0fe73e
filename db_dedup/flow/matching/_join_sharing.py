"""Join the groups of rows that share enough hashes, in threads.

Each thread joins groups of its own, so that no thread reads a half-changed group, and the result does not
depend on which thread is faster. Then its groups are joined to those of all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import slices_of
from db_dedup.flow.candidates.sketches import (
    Sketches,
    count_entries,
    entries_of_part,
    least_in_common,
    runs_of_equal,
)
from db_dedup.flow.compare.kernels import RowArrays, RuleNumbers
from db_dedup.flow.matching._bitmaps import Bitmaps, make_bitmaps
from db_dedup.flow.matching._join_features import (
    RareFeatures,
    SearchedRun,
    count_visits,
    index_rarest,
    join_indexed,
    sort_run,
)
from db_dedup.flow.matching._join_runs import can_search, join_alike, join_all, join_counted, join_runs
from db_dedup.flow.matching._shared_hashes import BYTES_A_HASH, RunHash, count_odd
from db_dedup.flow.matching.budget import Budget, slices_within
from db_dedup.flow.matching.groups import join_pairs
from db_dedup.flow.threads import in_threads
from db_dedup.progress import Progress

# From so many rows of a run on, shared hashes are counted. For fewer rows it takes longer than it saves.
SHORTEST_COUNTED = 128
# Up to so many rows every two rows of a run are compared. Of a longer run only those that share one of the
# features that are the rarest in it, if that is cheaper: a visit of that index takes half as long as a
# comparison.
_LONGEST_COMPARED = 2_000
# The same where the measure has no bound. The others are left to Python, which takes long for each of them.
_LONGEST_WITHOUT_BOUND = 128
_VISITS_A_COMPARISON = 2
# Still longer runs are never compared as a whole. In these each row first gets some comparisons, which join
# most rows if all are alike.
_LONGEST_UNJOINED = 20_000
_COMPARISONS_A_ROW = 20
_INDEX_BYTES_A_FEATURE = 3  # whether it is rare, and its part of the row's bit set

Edges = tuple[NDArray[np.int32], NDArray[np.int32]]
"""(left, right) row numbers of pairs that joined two groups."""

_Join = Callable[[int, NDArray[np.int32]], Edges]
"""Finds the pairs of some part of the work, and joins them in the parents that it is given."""


def join_sharing(
    sketches: Sketches,
    salts: NDArray[np.uint64],
    parents: NDArray[np.int32],
    rows: RowArrays,
    rule: RuleNumbers,
    progress: Progress,
    budget: Budget,
) -> Iterator[Edges]:
    """Join the rows that share enough hashes and are confirmed; yield the pairs that joined two groups.

    Args:
        sketches: of all rows of the table.
        salts: uint64[n], rows with different ones share no hash.
        parents: int32[n], the union-find parents of the rows.
        rows: the n rows.
        rule: the rule that decides.
        progress: gets the number of pairs.
        budget: memory and threads.
    """
    count = count_entries(sketches, rows.sketch_places)
    if not count:
        return
    budget = budget.for_rows(parents.size)
    parts = max(-(-count // budget.entries_a_part(count, parents.size)), budget.threads)
    bitmaps = make_bitmaps(rows, rule, budget.bitmap_bytes)
    runs = _Runs(sketches, salts, rows, rule, budget, parts, bitmaps, *count_odd(rows))
    yield from _join_each(runs.join_part, range(parts), parents, progress, budget.threads)


@dataclass(frozen=True)
class _Runs:
    """The rows of a table by the hashes that they share: each run is all rows that share one.

    Attributes:
        sketches: as for `join_sharing`.
        salts: as for `join_sharing`.
        rows: as for `join_sharing`.
        rule: as for `join_sharing`.
        budget: as for `join_sharing`.
        parts: how many parts all the hashes come in.
        bitmaps: of the rows.
        frequencies: by `count_odd`.
        odd_counts: by `count_odd`.
    """

    sketches: Sketches
    salts: NDArray[np.uint64]
    rows: RowArrays
    rule: RuleNumbers
    budget: Budget
    parts: int
    bitmaps: Bitmaps
    frequencies: NDArray[np.int32]
    odd_counts: NDArray[np.int32]

    def join_part(self, part: int, parents: NDArray[np.int32]) -> Edges:
        """Join the rows of the runs of one part."""
        entries = entries_of_part(self.sketches, self.rows.sketch_places, self.salts, part, self.parts)
        run_rows, starts, values = runs_of_equal(*entries)
        hashes = values - self.salts[run_rows[starts[:-1]]]
        lengths = np.diff(starts)
        # Half as many as there are pairs of rows, or so many that no other way is worth its preparation; of
        # the longest runs no more than of others.
        most = np.maximum(lengths, 2 * _LONGEST_COMPARED) * lengths // 4
        most = np.minimum(most, _LONGEST_UNJOINED**2 // 4)
        is_counted = self._are_counted(run_rows, starts, hashes, most)
        of_runs = run_rows, starts, hashes, self.frequencies, SHORTEST_COUNTED
        of_all = self.bitmaps, parents, self.rows, self.rule
        longest = _LONGEST_COMPARED
        if not can_search(self.rule):
            longest = min(longest, _LONGEST_WITHOUT_BOUND)
        left, right, is_left = join_runs(*of_runs, is_counted, longest, *of_all)
        edges = [(left, right)]
        counted = np.flatnonzero(is_left & is_counted)
        if counted.size:  # else the kernel need not be compiled
            left, right, is_left[counted] = join_counted(*of_runs, counted, most, *of_all)
            edges.append((left, right))
        for run in np.flatnonzero(is_left).tolist():
            run_hash = RunHash(hashes[run], self.frequencies, SHORTEST_COUNTED)
            edges += self._join_long_run(run_rows[starts[run] : starts[run + 1]], run_hash, parents)
        return np.concatenate([left for left, _ in edges]), np.concatenate([right for _, right in edges])

    def _are_counted(
        self,
        run_rows: NDArray[np.int32],
        starts: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        most: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Return bool[r]: the runs of which shared hashes are counted, if the memory holds these.

        A pair that shares an even hash needs no other one. A row that needs one odd hash alone may have to be
        compared with all others.

        Args:
            run_rows: row numbers, run by run.
            starts: int64[r + 1], where each run starts.
            hashes: uint64[r], the hash of each run.
            most: int64[r], the most comparisons.
        """
        lengths = np.diff(starts)
        are_counted = (lengths >= SHORTEST_COUNTED) & (hashes & np.uint64(1)).astype(np.bool_)
        some = np.flatnonzero(are_counted)
        if some.size:
            firsts, places = slices_of(starts, some)
            own, firsts, lengths = run_rows[places], firsts[:-1], lengths[some]
            held = BYTES_A_HASH * np.add.reduceat(self.odd_counts[own], firsts, dtype=np.int64)
            needed = least_in_common(self.sketches.counts[self.rows.sketch_places[own]])
            needing_one = np.add.reduceat(needed == 1, firsts, dtype=np.int64)
            are_counted[some] = (held <= self.budget.index_bytes) & can_search(self.rule)
            are_counted[some] &= np.minimum(needing_one, lengths // 2) * lengths <= most[some]
        return are_counted

    def _join_long_run(
        self, some: NDArray[np.int32], run_hash: RunHash, parents: NDArray[np.int32]
    ) -> Iterator[Edges]:
        """Join the rows of a long run by the features that are the rarest in it, or by comparing every two.

        As many rows as the memory holds are indexed at a time.
        """
        bitmaps, rows, rule = self.bitmaps, self.rows, self.rule
        if some.size > _LONGEST_UNJOINED or not can_search(rule):
            some, left, right = join_alike(some, _COMPARISONS_A_ROW, parents, rows, rule)
            yield left, right
        if not some.size:
            return
        run: SearchedRun = sort_run(some, parents, rows, rule)
        amounts = _INDEX_BYTES_A_FEATURE * run.sizes + 4 * run.rare
        for begin, end in slices_within(amounts, self.budget.index_bytes):
            index: RareFeatures = index_rarest(begin, end, run, bitmaps, rows)
            comparisons = some.size * (some.size - 1) // 2
            if (
                some.size <= _LONGEST_UNJOINED
                and count_visits(run, index) > _VISITS_A_COMPARISON * comparisons
            ):
                yield join_all(some, run_hash, bitmaps, parents, rows, rule)
                return
            left, right = join_indexed(run, index, run_hash, bitmaps, parents, rows, rule)
            yield left, right


def _join_each(
    join: _Join, numbers: Sequence[int], parents: NDArray[np.int32], progress: Progress, threads: int
) -> Iterator[Edges]:
    """Call `join` for each number, in threads, and join all groups in `parents`."""
    for first in range(0, len(numbers), threads):
        some = numbers[first : first + threads]
        own_parents = [parents.copy() for _ in some]
        for left, right in list(in_threads(threads, join, some, own_parents)):
            are_joining = join_pairs(left, right, parents)
            progress.advance(int(np.count_nonzero(are_joining)))
            yield left[are_joining], right[are_joining]
