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
    LeftOver,
    RareFeatures,
    index_rarest,
    join_indexed,
    sort_left_over,
)
from db_dedup.flow.matching._join_runs import join_long_runs, join_runs
from db_dedup.flow.matching._outlines import Outlines, count_outlines, outline_rows
from db_dedup.flow.matching._threads import in_threads
from db_dedup.flow.matching.budget import Budget, slices_within
from db_dedup.flow.matching.groups import join_pairs
from db_dedup.flow.matching.spool import zeros
from db_dedup.progress import Progress

# In longer runs each row gets this many comparisons; the rest of the run is searched by the rarest features.
_LONGEST_COMPARED = 20_000
_COMPARISONS_A_ROW = 200
_ROWS_A_SEARCH = 10_000

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
    unlike = np.zeros(parents.size, np.bool_)
    sizes, firsts = count_outlines(rows, rule)
    sets = zeros(int(firsts[-1]), np.uint64, budget.outline_bytes)
    outlines = outline_rows(sizes, firsts, sets, rows, rule)

    def join_part(part: int, own_parents: NDArray[np.int32]) -> Edges:
        runs = runs_of_equal(*entries_of_part(sketches, rows.sketch_places, salts, part, parts))
        left, right, is_long = join_runs(*runs, _LONGEST_COMPARED, outlines, own_parents, rows, rule)
        if not is_long.any():  # else the kernel need not be compiled
            return left, right
        more = join_long_runs(*runs, is_long, _COMPARISONS_A_ROW, unlike, own_parents, rows, rule)
        return np.concatenate([left, more[0]]), np.concatenate([right, more[1]])

    yield from _join_each(join_part, range(parts), parents, progress, budget.threads)
    # These share hashes with very many rows that are not like them.
    left_over = np.flatnonzero(unlike).astype(np.int32)
    if left_over.size:
        yield from _join_left_over(left_over, outlines, parents, rows, rule, progress, budget)


def _join_left_over(
    some: NDArray[np.int32],
    outlines: Outlines,
    parents: NDArray[np.int32],
    rows: RowArrays,
    rule: RuleNumbers,
    progress: Progress,
    budget: Budget,
) -> Iterator[Edges]:
    """Join these rows by their rarest features; as many of them are indexed at a time as the memory holds."""
    left_over: LeftOver = sort_left_over(some, parents, rows, rule)
    for begin, end in slices_within(left_over.sizes + 4 * left_over.rare, budget.index_bytes):
        index = index_rarest(begin, end, left_over, rows)

        def join_some(first: int, own_parents: NDArray[np.int32], index: RareFeatures = index) -> Edges:
            last = min(first + _ROWS_A_SEARCH, some.size)
            left, right = join_indexed(first, last, left_over, index, outlines, own_parents, rows, rule)
            return left, right

        firsts = range(0, some.size, _ROWS_A_SEARCH)
        yield from _join_each(join_some, firsts, parents, progress, budget.threads)


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
