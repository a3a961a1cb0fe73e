"""Steps 5 to 7 for a whole table: exact duplicates, candidates, confirmed pairs, groups.

The groups are found first. They are exact, although pairs of rows that are joined already are not compared:
so a cluster of near-equal rows takes time with its size, not with its square. Then all pairs of each group
are found. A group past the limit keeps only the pairs that connect it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import contiguous, spread_order
from db_dedup.flow.candidates.blocks import candidate_pairs
from db_dedup.flow.compare.kernels import confirm_pairs
from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching import _pairs as kernels
from db_dedup.flow.matching._join_sharing import join_sharing
from db_dedup.flow.matching._list_pairs import HashIndex, index_hashes, pairs_of_some
from db_dedup.flow.matching.budget import DEFAULT, Budget, slices_within
from db_dedup.flow.matching.groups import flatten, group_sizes
from db_dedup.flow.matching.paging import PAIRS_AT_A_TIME, expect_reads, fits_into_memory, prefetch
from db_dedup.flow.matching.pairs import NO_PAIRS, Pairs, PairSpool
from db_dedup.flow.matching.rejections import pack, unpack
from db_dedup.flow.threads import in_threads
from db_dedup.progress import Progress
from db_dedup.records.calibration import PairSetting
from db_dedup.records.fingerprints import BLOCK_SHIFTS
from db_dedup.translation import Phrase

NO_ROW = -1
_ROWS_A_BLOCK = 64
_ROWS_A_SLICE = 20_000
_ROWS_WORTH_THREADS = 5_000
_HASHES_WORTH_THREADS = 250_000  # of fewer, but longer rows
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that small numbers become distinct large ones

_STEP = Phrase("matching")  # of the progress bar


@dataclass(frozen=True)
class Matches:
    """The answer for n rows.

    Attributes:
        copy_of: int32[n], the first-received row with the same digest, or -1.
        pairs: pairs of canonical rows.
        group_of: int32[n], the representative's number, or -1 for a row without duplicates.
        is_loose: bool[n], True at the representative of a group in which a canonical row is not similar to
            the representative, or which has both rows of a rejected pair.
        is_abridged: bool[n], True at the representative of a group that keeps only the pairs that connect it.
    """

    copy_of: NDArray[np.int32]
    pairs: Pairs
    group_of: NDArray[np.int32]
    is_loose: NDArray[np.bool_]
    is_abridged: NDArray[np.bool_]


def match_table(
    table: ComparedRows,
    rule: Rule,
    abridge_above: int,
    progress: Progress,
    copy_of: NDArray[np.int32] | None = None,
    budget: Budget = DEFAULT,
) -> Matches:
    """Find every duplicate pair and group of a table.

    Args:
        table: all its rows.
        rule: the rule that decides.
        abridge_above: a group of more canonical rows keeps only the pairs that connect it.
        progress: gets the state of the work.
        copy_of: the exact duplicates, by `find_exact_duplicates`; found here if left out.
        budget: memory and threads. Only the pairs that connect an abridged group depend on these.
    """
    if copy_of is None:
        copy_of = find_exact_duplicates(table.digests)
    canonical = _canonical_rows(table, copy_of)
    search = _Search(table, rule, canonical, budget)
    connecting = search.connect(progress)
    roots = search.parents
    sizes = group_sizes(roots)
    is_big = sizes > abridge_above
    similar = np.zeros(roots.size, np.int64)
    with PairSpool(budget.held_bytes) as spool:
        for part in search.all_pairs(sizes, is_big, progress):
            np.add.at(similar, part.left[roots[part.left] == part.left], 1)
            spool.add(part.among(canonical))
        spool.add(search.connecting_pairs(connecting, is_big).among(canonical))
        pairs = spool.all_pairs()
    is_loose = search.loose_groups(sizes, is_big, similar)

    count = table.fingerprints.size
    group_of = np.full(count, NO_ROW, np.int32)
    in_pair = sizes[roots] > 1
    group_of[canonical[in_pair]] = canonical[roots[in_pair]]
    add_exact_duplicates(group_of, copy_of)
    return Matches(
        copy_of,
        pairs,
        group_of,
        _spread(is_loose, canonical, count),
        _spread(is_big, canonical, count),
    )


def add_exact_duplicates(group_of: NDArray[np.int32], copy_of: NDArray[np.int32]) -> None:
    """Add exact duplicates to the groups of canonical rows, in place.

    Args:
        group_of: int32[n], set for the canonical rows that are in a pair.
        copy_of: int32[n], the canonical row of each exact duplicate.
    """
    duplicates = np.flatnonzero(copy_of != NO_ROW)
    classes = copy_of[duplicates]
    alone = classes[group_of[classes] == NO_ROW]
    group_of[alone] = alone
    group_of[duplicates] = group_of[classes]


def connecting_pairs(
    table: ComparedRows, rule: Rule, progress: Progress
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return duplicate pairs that connect all groups of a table, for a group of g canonical rows g - 1."""
    canonical = _canonical_rows(table, find_exact_duplicates(table.digests))
    left, right = _Search(table, rule, canonical).connect(progress)
    return canonical[left], canonical[right]


def duplicates_among(
    table: ComparedRows, rule: Rule, left: NDArray[np.int32], right: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return bool[p]: which of p pairs of canonical rows are candidate pairs that the rule confirms."""
    arrays = table.arrays(slice(None), table.rejected)
    found: NDArray[np.bool_] = kernels.are_duplicates(*contiguous(left, right), arrays, rule.numbers)
    return found


def all_pairs(table: ComparedRows, rule: Rule) -> Iterator[Pairs]:
    """Yield every duplicate pair of canonical rows, for a block of rows at a time, since they may be many."""
    rows = _canonical_rows(table, np.full(table.digests.shape[0], NO_ROW, np.int32))
    search = _Search(table, rule, rows)
    index = search.hash_index()
    for first in range(0, rows.size, _ROWS_A_BLOCK):
        yield search.pairs_of(first, min(first + _ROWS_A_BLOCK, rows.size), index).among(rows)


def pairs_between(
    rows: ComparedRows, rule: Rule, lefts: NDArray[np.int32], rights: NDArray[np.int32]
) -> Pairs:
    """Return every duplicate pair of one of `lefts` and one of `rights`, by comparing each with each.

    Args:
        rows: the rows of which `lefts` and `rights` are numbers.
        rule: the rule that decides.
        lefts: int32[l], rows with a fingerprint.
        rights: int32[r], other rows with a fingerprint.
    """
    arrays = rows.arrays(slice(None), rows.rejected)
    return Pairs(*kernels.pairs_between(lefts, rights, arrays, rule.numbers))


def rows_with_candidates(
    table: ComparedRows, radius: int, progress: Progress, budget: Budget
) -> NDArray[np.bool_]:
    """Return bool[n]: the canonical rows that are in a candidate pair of the radius.

    The table may be without features; it has no sketches.
    """
    canonical = _canonical_rows(table, find_exact_duplicates(table.digests))
    candidates_only = Rule(PairSetting(radius, False, NO_SIMILARITY, 0.0))
    search = _Search(table, candidates_only, canonical, budget._replace(threads=1))
    search.connect(progress, "candidates")
    return _spread(group_sizes(search.parents)[search.parents] > 1, canonical, table.fingerprints.size)


def find_exact_duplicates(digests: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return int32[n]: the first row with the same digest; -1 for that row and for rows without features."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    ordered = digests[order]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    # lexsort is stable, so the first of a run is the first received.
    canonical = order[is_first][np.cumsum(is_first) - 1]
    copy_of = np.full(order.size, NO_ROW, np.int32)
    is_duplicate = ~is_first & np.any(ordered != 0, axis=1)
    copy_of[order[is_duplicate]] = canonical[is_duplicate]
    return copy_of


def _canonical_rows(table: ComparedRows, copy_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the canonical rows that have a fingerprint: only these are in pairs."""
    return np.flatnonzero((copy_of == NO_ROW) & table.has_fingerprint).astype(np.int32)


class _Search:
    """The search among canonical rows; row numbers in this class are positions among these."""

    def __init__(
        self, table: ComparedRows, rule: Rule, canonical: NDArray[np.int32], budget: Budget = DEFAULT
    ) -> None:
        is_large = (
            canonical.size >= _ROWS_WORTH_THREADS or table.sketches.values.size >= _HASHES_WORTH_THREADS
        )
        self._budget = budget if is_large else budget._replace(threads=1)
        self._rejected = _among(table.rejected, canonical)
        self._rows = table.arrays(canonical, self._rejected)
        self._rule = rule.numbers
        self._values = self._rows.fingerprints
        self._sketches = table.sketches
        self._within_values = self._rows.within.astype(np.uint64) * _SPREAD
        self.parents = np.arange(canonical.size, dtype=np.int32)

    def connect(self, progress: Progress, step: str = _STEP) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Join all groups; return the pairs that connect them, for a group of g rows g - 1 pairs."""
        progress.start(step, None)
        expect_reads(self._rows.hashes, in_order=False)
        found = [self._join(*self._neighbours(shift)) for shift in BLOCK_SHIFTS]
        near = candidate_pairs(self._values, self._rule.radius, self.parents, self._rows.within)
        for left, right in near:
            found.append(self._join(left, right))
            progress.advance(left.size)
        if self._sketches.values.size:
            of_all = self.parents, self._rows, self._rule
            found += join_sharing(self._sketches, self._within_values, *of_all, progress, self._budget)
            flatten(self.parents)
        progress.finish()
        return np.concatenate([left for left, _ in found]), np.concatenate([right for _, right in found])

    def _neighbours(self, shift: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the near pairs among neighbours when the fingerprints are sorted from one block on.

        They are cheap to find, and join most rows of a large cluster before the complete search starts.
        """
        values = self._values
        rotated = values if shift == 0 else (values << np.uint64(shift)) | (values >> np.uint64(64 - shift))
        within = self._rows.within
        is_one_class = not np.any(within[1:] != within[:-1])
        order = spread_order(rotated)[0] if is_one_class else np.lexsort((rotated, within))
        order = order.astype(np.int32)
        left, right = order[:-1], order[1:]
        is_near = np.bitwise_count(values[left] ^ values[right]) <= self._rule.radius
        return left[is_near], right[is_near]

    def _join(
        self, left: NDArray[np.int32], right: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        if fits_into_memory(self._rows.hashes):
            joined = self._join_part(left, right)
        else:
            parts = [slice(i, i + PAIRS_AT_A_TIME) for i in range(0, left.size, PAIRS_AT_A_TIME)]
            found = [np.empty(0, np.bool_)]
            for part in parts:
                self._prefetch(left[part], right[part])
                found.append(self._join_part(left[part], right[part]))
            joined = np.concatenate(found)
        flatten(self.parents)
        return left[joined], right[joined]

    def _join_part(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Join the groups of these pairs; return bool[p], which pairs joined two."""
        joined: NDArray[np.bool_] = kernels.join_confirmed(left, right, self.parents, self._rows, self._rule)
        return joined

    def _prefetch(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> None:
        """Prefetch the features of the pairs that are not joined yet."""
        is_apart = self.parents[left] != self.parents[right]
        prefetch(np.unique(np.concatenate([left[is_apart], right[is_apart]])), self._rows)

    def all_pairs(
        self, sizes: NDArray[np.int64], is_big: NDArray[np.bool_], progress: Progress
    ) -> Iterator[Pairs]:
        """Yield all confirmed pairs of the groups up to the limit."""
        roots = self.parents
        members = np.flatnonzero((sizes[roots] > 1) & ~is_big[roots]).astype(np.int32)
        members = members[np.argsort(roots[members], kind="stable")]
        progress.start("pairs", int(members.size))

        def pairs_of_slice(bounds: tuple[int, int]) -> tuple[Pairs, int]:
            found = kernels.pairs_within_groups(*bounds, members, roots, self._rows, self._rule)
            return Pairs(*found), bounds[1] - bounds[0]

        slices = slices_within(
            _rows_after(roots[members], sizes), self._budget.pairs_a_part, most_rows=_ROWS_A_SLICE
        )
        for part, count in in_threads(self._budget.threads, pairs_of_slice, slices):
            yield part
            progress.advance(count)
        progress.finish()

    def hash_index(self) -> HashIndex:
        """Return an index of the rows by their hashes, for `pairs_of`."""
        index: HashIndex = index_hashes(self._rows)
        return index

    def pairs_of(self, first: int, last: int, index: HashIndex) -> Pairs:
        """Return the pairs of these rows with each other and with all rows after them."""
        return Pairs(*pairs_of_some(first, last, index, self._rows, self._rule))

    def connecting_pairs(
        self, connecting: tuple[NDArray[np.int32], NDArray[np.int32]], is_big: NDArray[np.bool_]
    ) -> Pairs:
        """Return those of the connecting pairs that are of groups past the limit."""
        left, right = connecting
        is_kept = is_big[self.parents[left]]
        if not is_kept.any():  # else the kernel need not be compiled
            return NO_PAIRS
        left, right = left[is_kept], right[is_kept]
        left, right = np.minimum(left, right), np.maximum(left, right)
        distances = np.bitwise_count(self._values[left] ^ self._values[right]).astype(np.int16)
        _, similarities, kinds = confirm_pairs(left, right, self._rows, self._rule)
        return Pairs(left, right, distances, similarities, kinds)

    def loose_groups(
        self, sizes: NDArray[np.int64], is_big: NDArray[np.bool_], similar: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return bool[h]: True at the root of a loose group, as `Matches.is_loose` defines it.

        Args:
            sizes: by `group_sizes`.
            is_big: bool[h], the roots of the groups past the limit.
            similar: int64[h], for each root of the other groups the rows that are a pair with it.
        """
        roots = self.parents
        of_big = np.flatnonzero(is_big[roots] & (roots != np.arange(roots.size))).astype(np.int32)
        if of_big.size:  # else the kernel need not be compiled
            duplicates_root = kernels.are_duplicates(roots[of_big], of_big, self._rows, self._rule)
            similar += np.bincount(roots[of_big[duplicates_root]], minlength=roots.size)
        loose: NDArray[np.bool_] = (sizes > 1) & (similar < sizes - 1)
        rejected = roots[unpack(self._rejected)]
        loose[rejected[rejected[:, 0] == rejected[:, 1], 0]] = True
        return loose


def _rows_after(groups: NDArray[np.int32], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[m]: how many rows of its group come after each of m rows.

    Args:
        groups: int32[m], ascending: the root of each row's group, all of whose rows are there.
        sizes: int64[h], by `group_sizes`.
    """
    after: NDArray[np.int64] = np.searchsorted(groups, groups) + sizes[groups] - np.arange(1, groups.size + 1)
    return after


def _among(rejected: NDArray[np.int64], canonical: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the rejected pairs of two canonical rows, by their positions among the canonical rows."""
    rows = unpack(rejected)
    places = np.searchsorted(canonical, rows)
    is_canonical = (
        canonical[np.minimum(places, canonical.size - 1)] == rows
        if canonical.size
        else np.zeros_like(rows, np.bool_)
    )
    return pack(places[is_canonical.all(axis=1)])


def _spread(flags: NDArray[np.bool_], canonical: NDArray[np.int32], count: int) -> NDArray[np.bool_]:
    spread = np.zeros(count, np.bool_)
    spread[canonical] = flags
    return spread
