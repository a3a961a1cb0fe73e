"""Join the groups of rows that share enough hashes, in threads.

Each thread joins groups of its own, so that no thread meets a half-changed group, and the result does not
depend on which thread is faster. Then its groups are joined to those of all.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.sketches import Sketches, count_entries, entries_of_part, runs_of_equal
from db_dedup.flow.compare.kernels import RowArrays, RuleNumbers
from db_dedup.flow.matching._join_features import (
    RareFeatures,
    SearchedRun,
    count_visits,
    index_rarest,
    join_indexed,
    sort_run,
)
from db_dedup.flow.matching._join_runs import can_search, join_alike, join_all, join_runs
from db_dedup.flow.matching._outlines import Outlines, count_outlines, outline_rows
from db_dedup.flow.matching.budget import Budget, slices_within
from db_dedup.flow.matching.groups import join_pairs
from db_dedup.flow.matching.spool import zeros
from db_dedup.flow.threads import in_threads
from db_dedup.progress import Progress

# Up to so many rows every two rows of a run are compared. Of a longer run only those that share one of the
# features that are rarest in the run, if that is cheaper: a visit of the index takes half as long as a
# comparison.
_LONGEST_COMPARED = 2_000
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
    parts = max(-(-count // budget.entries_a_part(count, parents.size)), budget.threads)
    sizes, firsts = count_outlines(rows, rule)
    sets = zeros(int(firsts[-1]), np.uint64, budget.outline_bytes)
    outlines = outline_rows(sizes, firsts, sets, rows, rule)

    def join_part(part: int, own_parents: NDArray[np.int32]) -> Edges:
        run_rows, starts = runs_of_equal(*entries_of_part(sketches, rows.sketch_places, salts, part, parts))
        left, right, is_long = join_runs(
            run_rows, starts, _LONGEST_COMPARED, outlines, own_parents, rows, rule
        )
        edges = [(left, right)]
        for run in np.flatnonzero(is_long).tolist():
            some = run_rows[starts[run] : starts[run + 1]]
            edges += _join_long_run(some, outlines, own_parents, rows, rule, budget)
        return np.concatenate([left for left, _ in edges]), np.concatenate([right for _, right in edges])

    yield from _join_each(join_part, range(parts), parents, progress, budget.threads)


def _join_long_run(
    some: NDArray[np.int32],
    outlines: Outlines,
    parents: NDArray[np.int32],
    rows: RowArrays,
    rule: RuleNumbers,
    budget: Budget,
) -> Iterator[Edges]:
    """Join the rows of a long run by the features that are the rarest in it, or by comparing every two rows.

    As many rows as the memory holds are indexed at a time.
    """
    if some.size > _LONGEST_UNJOINED or not can_search(rule):
        some, left, right = join_alike(some, _COMPARISONS_A_ROW, parents, rows, rule)
        yield left, right
    if not some.size:
        return
    run: SearchedRun = sort_run(some, parents, rows, rule)
    for begin, end in slices_within(_INDEX_BYTES_A_FEATURE * run.sizes + 4 * run.rare, budget.index_bytes):
        index: RareFeatures = index_rarest(begin, end, run, outlines, rows)
        comparisons = some.size * (some.size - 1) // 2
        if some.size <= _LONGEST_UNJOINED and count_visits(run, index) > _VISITS_A_COMPARISON * comparisons:
            yield join_all(some, outlines, parents, rows, rule)
            return
        left, right = join_indexed(run, index, outlines, parents, rows, rule)
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
