"""A whole table with all values that any rule can need of its pairs: every measure, sketches and distance.

A scan keeps only what its own rule needs. To compare it with other rules takes two sets of features a row.
Nothing of this is stored.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.blocks import candidate_pairs
from db_dedup.flow.candidates.postings import Postings, sharing_pairs
from db_dedup.flow.candidates.sketches import Sketches, entries, runs_of_equal, share_enough_each
from db_dedup.flow.compare.edit_distance import edit_similarities
from db_dedup.flow.compare.kernels import long_similarities, similarities
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.compare.numbers import which_have_other_numbers
from db_dedup.flow.compare.rows import compared_texts
from db_dedup.flow.compare.rule import FAR, MeasuredPairs, Rule
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import Details
from db_dedup.flow.matching._measured import sharing_in_runs
from db_dedup.flow.matching.match import NO_ROW, find_exact_duplicates
from db_dedup.flow.matching.rejections import pack, unpack
from db_dedup.flow.matching.spool import FeatureSpool
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.records import SourceRow
from db_dedup.records.calibration import PairSetting
from db_dedup.records.recipe import Recipe

_LONGEST_COMPARED = 200
"""The most rows that share a hash of which every two are compared."""

LENGTH_EDGES: Final = (50, 100, 200, 400)
"""The limits between length bands, in characters of the shorter text of a pair."""


@dataclass(frozen=True)
class MeasuredRows:
    """n rows in the order they were read.

    Attributes:
        row_keys: n row keys.
        digests: uint64[n, 2]; equal for exact duplicates.
        canonical_of: int32[n], the first row with the same digest, which may be the row itself.
        fingerprints: uint64[n].
        has_fingerprint: bool[n].
        within: int32[n], equal where rows agree in the `within` columns.
        lengths: int64[n], characters in the weighted columns.
        sketches: of the n rows.
        sketches_by_length: of the n rows, by the recipe of a measure that compares short texts in another way
            (`Measure.by_length`); None: the same.
        words: the features by the rule's segmenter.
        grams: the character 3-grams.
        details: what measures of character 3-grams compare beside them, and the names of places.
        kinds_by: the setting that the kinds of pairs depend on; None if they are not wanted.
    """

    row_keys: list[str]
    digests: NDArray[np.uint64]
    canonical_of: NDArray[np.int32]
    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    within: NDArray[np.int32]
    lengths: NDArray[np.int64]
    sketches: Sketches
    sketches_by_length: Sketches | None
    words: Features
    grams: Features
    details: Details
    kinds_by: PairSetting | None

    def digest(self, row: int) -> bytes:
        """Return the digest of a row's text."""
        return bytes(self.digests[row].tobytes())


@dataclass(frozen=True)
class MeasuredRowPairs:
    """p pairs of rows.

    Attributes:
        left: int32[p].
        right: int32[p].
        measured: the values by every measure. The distance is `FAR`, and `shares_hashes` False, if a row has
            no fingerprint or the rows do not agree in `within`.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    measured: MeasuredPairs


class MeasuredTable:
    """Collects all rows of a table, page by page.

    It is a context manager, since the features are in temporary files.
    """

    def __init__(
        self,
        recipe: Recipe,
        kinds_by: PairSetting | None = None,
        short_threshold: float = 0.0,
        threads: int = 1,
    ) -> None:
        """Prepare the segmenter, which takes a moment.

        Args:
            recipe: of the table.
            kinds_by: also measure what kinds of pairs there are, by this setting.
            short_threshold: of the rule. The recipe has it only if its measure compares short texts by it,
                and then the sketches are others than those of the other measures.
            threads: in which the rows are fingerprinted.
        """
        self._kinds_by = kinds_by
        by_words = replace(recipe, compared_by="words", sketches=True, names_places=False)
        self._fingerprinter = Fingerprinter(by_words, threads=threads)
        # Character 3-grams need no segmenter; "words" is the cheapest to load, and takes no user words.
        # Any threshold makes the details of short texts, which a setting that is tried may compare.
        by_grams = replace(
            recipe, compared_by="grams", segmenter="words", user_words=(), sketches=False, short_threshold=1.0
        )
        self._by_grams = Fingerprinter(by_grams, threads=threads)
        threshold = max(short_threshold, recipe.short_threshold)
        self._is_by_length = recipe.short_threshold > 0
        self._other_sketches: Fingerprinter | None = None
        if threshold > 0:
            other = 0.0 if self._is_by_length else threshold
            by_other = replace(by_grams, short_threshold=other, long_grams=False, names_places=False)
            self._other_sketches = Fingerprinter(replace(by_other, sketches=True), threads=threads)
        self._keys: list[str] = []
        self._lengths: list[int] = []
        self._within: list[int] = []
        self._within_numbers: dict[str | None, int] = {}
        self._done: list[tuple[NDArray[np.uint64], NDArray[np.bool_], bytes]] = []
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Open the temporary files."""
        self._words = self._resources.enter_context(FeatureSpool(keep_weights=True))
        self._grams = self._resources.enter_context(FeatureSpool(keep_weights=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the temporary files."""
        self._resources.close()

    def add_page(self, page: Sequence[SourceRow]) -> None:
        """Add rows."""
        values, within = [row.values for row in page], [row.within for row in page]
        done: FingerprintedRows = self._fingerprinter.fingerprint(values, within)
        self._words.add(done.features, done.details)
        self._words.add_sketches(done.sketches)
        by_grams = _without_words(self._by_grams, values, within, done.digests)
        self._grams.add(by_grams.features, by_grams.details)
        if self._other_sketches is not None:
            others = _without_words(self._other_sketches, values, within, done.digests)
            self._grams.add_sketches(others.sketches)
        self._keys += [row.row_key for row in page]
        self._lengths += [sum(map(len, row.values)) for row in page]
        numbers = self._within_numbers
        self._within += [numbers.setdefault(row.within, len(numbers)) for row in page]
        self._done.append((done.fingerprints, done.has_fingerprint, b"".join(done.digests)))

    def rows(self) -> MeasuredRows:
        """Return all rows that were added; valid while the files are open."""
        digests = np.frombuffer(b"".join(part[2] for part in self._done), np.uint64).reshape(-1, 2)
        copy_of = find_exact_duplicates(digests)
        sketches, by_length = self._words.all_sketches(), None
        if self._other_sketches is not None:
            both = sketches, self._grams.all_sketches()
            by_length, sketches = both if self._is_by_length else both[::-1]
        return MeasuredRows(
            self._keys,
            digests,
            np.where(copy_of == NO_ROW, np.arange(copy_of.size), copy_of).astype(np.int32),
            np.concatenate([np.empty(0, np.uint64), *(part[0] for part in self._done)]),
            np.concatenate([np.empty(0, np.bool_), *(part[1] for part in self._done)]),
            np.array(self._within, np.int32),
            np.array(self._lengths, np.int64),
            sketches,
            by_length,
            self._words.all_features(),
            self._grams.all_features(),
            self._grams.all_details(),
            self._kinds_by,
        )


def _without_words(
    fingerprinter: Fingerprinter,
    values: Sequence[Sequence[str]],
    within: Sequence[str | None],
    digests: Sequence[bytes],
) -> FingerprintedRows:
    """Return character 3-grams, details and sketches: rows whose digests are known are not segmented."""
    return fingerprinter.fingerprint(values, within, digests, compares_known=True)


def length_bands(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n]: the number of the length band of each length."""
    return np.searchsorted(np.array(LENGTH_EDGES), lengths, side="right").astype(np.int64)


def find_measured(rows: MeasuredRows, radius: int, at_most: int) -> tuple[MeasuredRowPairs, bool]:
    """Return the candidate pairs of canonical rows by any candidate generator, with this radius.

    Args:
        rows: of the table.
        radius: bits.
        at_most: the most pairs to return; n near-equal rows have about n**2 / 2 pairs.

    Returns:
        (the pairs, whether these are all pairs).
    """
    is_canonical = (rows.canonical_of == np.arange(rows.canonical_of.size)) & rows.has_fingerprint
    canonical = np.flatnonzero(is_canonical).astype(np.int32)
    found = np.empty(0, np.int64)
    is_all = True
    for left, right, is_cut in _candidates(rows, canonical, radius, at_most):
        agrees = rows.within[canonical[left]] == rows.within[canonical[right]]
        pairs = np.stack([canonical[left[agrees]], canonical[right[agrees]]], axis=1).astype(np.int64)
        found = np.union1d(found, pack(pairs))
        is_all &= not is_cut
        if found.size > at_most:
            is_all = False
            break
    both = unpack(found[:at_most]).astype(np.int32)
    return measure_pairs(rows, both[:, 0], both[:, 1]), is_all


def measure_pairs(rows: MeasuredRows, left: NDArray[np.int32], right: NDArray[np.int32]) -> MeasuredRowPairs:
    """Return all values that a rule can need of these pairs.

    Exact duplicates have the distance 0, and the similarity 1 by every measure.
    """
    a, b = rows.canonical_of[left], rows.canonical_of[right]
    distances = np.bitwise_count(rows.fingerprints[a] ^ rows.fingerprints[b]).astype(np.int16)
    shares = share_enough_each(rows.sketches, a, b)
    others, by_length = rows.sketches_by_length, None
    if others is not None:
        by_length = share_enough_each(others, a, b)
    cannot = ~(rows.has_fingerprint[a] & rows.has_fingerprint[b]) | (rows.within[a] != rows.within[b])
    are_exact_duplicates = a == b
    distances[cannot] = FAR
    distances[are_exact_duplicates] = 0
    scores = {}
    for name, measure in MEASURES.items():
        features = rows.grams if measure.features == "grams" else rows.words
        score = similarities(name, features.starts, features.hashes, features.weights, a, b)
        scores[name] = np.where(are_exact_duplicates, 1.0, score)
    long_scores = np.where(are_exact_duplicates, 1.0, long_similarities(rows.details, a, b))
    edits = edit_similarities(rows.details.starts, rows.details.values, a, b)
    kinds = {} if rows.kinds_by is None else _kinds(rows, rows.kinds_by, a, b)
    numbers = which_have_other_numbers(rows.details.starts, rows.details.values, a, b)
    by_length = None if by_length is None else by_length & ~cannot
    shares &= ~cannot
    measured = MeasuredPairs(distances, shares, scores, edits, long_scores, kinds, numbers, by_length)
    return MeasuredRowPairs(left, right, measured)


def _kinds(
    rows: MeasuredRows, by: PairSetting, a: NDArray[np.int32], b: NDArray[np.int32]
) -> dict[str, NDArray[np.uint8]]:
    """Return name of a measure -> uint8[p], the packed kinds of these pairs of canonical rows."""
    kinds = {}
    for name, measure in MEASURES.items():
        features = rows.grams if measure.features == "grams" else rows.words
        compared = compared_texts(rows.within, features, rows.details)
        kinds[name] = Rule(replace(by, similarity=name)).kinds(compared, a, b)
    return kinds


def _candidates(
    rows: MeasuredRows, canonical: NDArray[np.int32], radius: int, at_most: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], bool]]:
    """Yield candidate pairs of each generator as positions among the canonical rows.

    With each of these parts comes whether it was cut off at more than `at_most` pairs.
    """
    places = canonical.astype(np.int64)
    for sketches in (rows.sketches, rows.sketches_by_length):
        if sketches is None:
            continue
        for values, positions in entries(sketches, places):
            run_rows, starts, run_values = runs_of_equal(values, positions)
            is_long = np.diff(starts) > _LONGEST_COMPARED
            sketched = sketches.starts, sketches.values, places
            of_runs = run_rows, starts, np.flatnonzero(~is_long), run_values
            left, right = sharing_in_runs(*of_runs, *sketched, at_most + 1)
            yield left, right, left.size > at_most
            long_runs = [run_rows[starts[run] : starts[run + 1]] for run in np.flatnonzero(is_long).tolist()]
            yield from _in_long_runs(long_runs, sketches, places, at_most)
    within = rows.within[canonical]
    for left, right in candidate_pairs(rows.fingerprints[canonical], radius, within=within):
        yield left, right, False


def _in_long_runs(
    runs: Sequence[NDArray[np.int32]], sketches: Sketches, places: NDArray[np.int64], at_most: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], bool]]:
    """Yield the pairs of rows in these runs that share enough hashes, as `_candidates` does.

    A pair may be in several runs. To take the pairs of each run by themselves would sort all pairs found so
    far for each run.
    """
    lefts, rights, count, is_cut = list[NDArray[np.int32]](), list[NDArray[np.int32]](), 0, False
    for some in runs:
        left, right = _sharing_among(sketches.take(places[some]), at_most)
        lefts.append(some[left])
        rights.append(some[right])
        count, is_cut = count + left.size, is_cut or left.size > at_most
        if count > at_most:
            yield np.concatenate(lefts), np.concatenate(rights), is_cut
            lefts, rights, count, is_cut = [], [], 0, False
    if lefts:
        yield np.concatenate(lefts), np.concatenate(rights), is_cut


def _sharing_among(sketches: Sketches, at_most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (left, right) of the pairs of n sketches that share enough hashes, `at_most` or some more.

    The hashes that two rows share are counted, which takes a hundredth of the time of comparing every two.
    """
    owners = np.repeat(np.arange(sketches.counts.size, dtype=np.int32), sketches.counts)
    postings = Postings.of(sketches.values, owners)
    # Each pair is found in both directions, and each row with itself.
    most = 2 * at_most + sketches.counts.size + 1
    left, right = sharing_pairs(sketches, postings, sketches.counts, most=most)
    return left[left < right], right[left < right]
