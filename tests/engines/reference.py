"""Random tables, and their answer by brute force: Python sets, every pair of rows, no compiled kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.characters import with_sets
from db_dedup.flow.features.details import CHARACTERS, LONG_GRAMS, PLACES, Details, join_sections
from db_dedup.flow.matching.budget import DEFAULT, Budget
from db_dedup.flow.matching.match import NO_ROW, Matches, match_table
from db_dedup.progress import NullProgress, Progress
from db_dedup.records.calibration import PairSetting
from db_dedup.records.kinds import KIND_BITS, KINDS, OTHER_PLACE, UNKNOWN, ExcludedKind
from tests.flow.reference import (
    Weights,
    edit_similarity,
    features_of,
    kind,
    long_similarity,
    meet,
    names_other_place,
    other_numbers,
    similarity,
    sketches_of,
)

_PLACES = [sort << 43 | one << 21 | other for sort in (0, 3) for one in (1, 2, 3) for other in (4, 5)]
"""Packed names of places of two sorts."""


@dataclass(frozen=True)
class Row:
    fingerprint: int | None
    digest: int
    within: int
    features: Weights
    sketch: frozenset[int] = frozenset()
    symbols: tuple[int, ...] = ()
    long_grams: frozenset[int] = frozenset()
    places: frozenset[int] = frozenset()


@dataclass(frozen=True)
class MatchRule:
    """A rule as tests write it; `measure` None confirms every candidate pair."""

    radius: int
    measure: str | None
    threshold: float
    abridge_above: int
    short_threshold: float = 0.0
    long_grams: bool = False
    exclude_kinds: tuple[ExcludedKind, ...] = ()

    @property
    def rule(self) -> Rule:
        measure = self.measure or NO_SIMILARITY
        return Rule(
            PairSetting(
                self.radius,
                True,
                measure,
                self.threshold,
                self.short_threshold,
                self.long_grams,
                self.exclude_kinds,
            )
        )

    def are_short(self, a: Row, b: Row) -> bool:
        both = bool(a.symbols) and bool(b.symbols)
        return both and self.measure == "char_overlap" and self.short_threshold > 0

    def are_long(self, a: Row, b: Row) -> bool:
        sizes = len(a.long_grams), len(b.long_grams)
        count = min(sizes) > 0 and (min(sizes) >= 100 or max(sizes) >= 300)
        return count and self.measure == "char_overlap" and self.long_grams

    def compare(self, a: Row, b: Row) -> tuple[bool, float | None]:
        """Whether a candidate pair is confirmed, and its similarity."""
        excluded = {KINDS.index(name) + 1 for name in self.exclude_kinds if name != "other_place"}
        packed = self.kind(a, b)
        is_kept = packed & KIND_BITS not in excluded
        is_kept &= not (packed & OTHER_PLACE and "other_place" in self.exclude_kinds)
        if self.measure is None:
            return is_kept, None
        if self.are_short(a, b):
            is_kept &= not other_numbers(a.symbols, b.symbols)
            score = edit_similarity(a.symbols, b.symbols)
            if score >= self.short_threshold:
                return is_kept, score
        score = similarity(self.measure, a.features, b.features)
        if self.are_long(a, b):
            score = min(score, long_similarity(a.long_grams, b.long_grams))
        return is_kept and score >= self.threshold, score

    def kind(self, a: Row, b: Row) -> int:
        """The packed kind of two rows."""
        if self.measure is None:
            return UNKNOWN
        by_long = self.are_long(a, b)
        one, other = (a.long_grams, b.long_grams) if by_long else (a.features, b.features)
        other_place = names_other_place(a.places, b.places)
        return kind(one, other, are_short=self.are_short(a, b), names_other_place=other_place)

    def match(
        self, table: ComparedRows, progress: Progress | None = None, budget: Budget = DEFAULT
    ) -> Matches:
        return match_table(table, self.rule, self.abridge_above, progress or NullProgress(), budget=budget)


def table_of(rows: Sequence[Row]) -> ComparedRows:
    """The features and sketches stand in another order than the rows."""
    places = np.array(Random(len(rows)).sample(range(len(rows)), len(rows)), np.int64)
    features: list[Weights] = [{} for _ in rows]
    for row, place in zip(rows, places.tolist(), strict=True):
        features[place] = row.features
    sketched = Random(len(rows) + 1).sample(range(len(rows)), len(rows))
    sketches = [b""] * len(rows)
    for row, place in zip(rows, sketched, strict=True):
        sketches[place] = np.array(sorted(row.sketch), np.uint64).tobytes()
    return ComparedRows(
        np.array([row.fingerprint or 0 for row in rows], np.uint64),
        np.array([row.fingerprint is not None for row in rows], np.bool_),
        np.array([(row.digest >> 1, row.digest & 1) for row in rows], np.uint64).reshape(-1, 2),
        np.array([row.within for row in rows], np.int32),
        features_of(features),
        _details_of(rows, places),
        places,
        sketches_of(sketches),
        np.array(sketched, np.int64),
    )


def _details_of(rows: Sequence[Row], places: NDArray[np.int64]) -> Details:
    placed = [rows[i] for i in np.argsort(places).tolist()]
    return join_sections(
        len(rows),
        {
            CHARACTERS: with_sets(*_joined([row.symbols for row in placed])),
            LONG_GRAMS: _starting(*_joined([sorted(row.long_grams) for row in placed])),
            PLACES: _starting(*_joined([sorted(row.places) for row in placed])),
        },
    )


def details_of(symbols: Sequence[tuple[int, ...]]) -> Details:
    """The details of short rows with these symbols."""
    counts, every = _joined(symbols)
    return join_sections(len(symbols), {CHARACTERS: with_sets(counts, every)})


def _joined(own: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    counts = np.array([*map(len, own)], np.int64)
    return counts, np.array([value for values in own for value in values], np.uint64)


def _starting(
    counts: NDArray[np.int64], values: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), values


def random_rows(
    chance: Random, count: int, *, with_sketches: bool = False, with_symbols: bool = False
) -> list[Row]:
    """Clusters of rows that differ in a few bits and features; some are copies, some have too little text."""
    rows: list[Row] = []
    other = Random(count)
    centres = [(chance.getrandbits(64), chance.sample(range(100), 8)) for _ in range(max(1, count // 8))]
    for digest in range(1, count + 1):
        if rows and chance.random() < 0.15:
            rows.append(chance.choice(rows))
            continue
        fingerprint, features = chance.choice(centres)
        for bit in chance.sample(range(64), chance.randrange(7)):
            fingerprint ^= 1 << bit
        kept = chance.sample(features, chance.randrange(4, 9))
        weights = {key: chance.randrange(1, 5) for key in [*kept, *chance.sample(range(100, 200), 2)]}
        too_little = chance.random() < 0.1
        silent = too_little and chance.random() < 0.5
        within = chance.randrange(2) if chance.random() < 0.3 else 0
        rows.append(
            Row(
                None if too_little else fingerprint,
                0 if silent else digest,
                within,
                {} if silent else weights,
                random_sketch(chance, len(centres)) if with_sketches else frozenset(),
                random_symbols(other, weights) if with_symbols else (),
                random_long_grams(other, kept),
                frozenset(other.sample(_PLACES, other.choice([0, 0, 1, 2]))),
            )
        )
    return rows


def random_long_grams(chance: Random, kept: Sequence[int]) -> frozenset[int]:
    """None, or some that depend on the features: rows that share features share about as many of these."""
    if chance.random() < 0.4:
        return frozenset()
    if chance.random() < 0.3:
        return frozenset(chance.sample(range(10_000, 90_000), 150))
    of_features = [50 * key + i for key in kept for i in range(chance.randrange(50))]
    return frozenset([*of_features, *chance.sample(range(9000, 9900), 5)])


def random_sketch(chance: Random, centres: int) -> frozenset[int]:
    """24 bands, of which others have one at most, and passages: two rows share enough of them, or too few."""
    own = [2 * chance.getrandbits(60) for _ in range(23)]
    passages = [2 * n + 1 for n in chance.sample(range(300), chance.choice([0, 2, 5, 20, 40]))]
    return frozenset([2 * chance.randrange(4 * centres), *own, *passages])


def random_symbols(chance: Random, weights: Weights) -> tuple[int, ...]:
    """One of three rows is not short; the symbols of the others are their features, as those of a text begin
    at its characters."""
    return () if chance.random() < 0.33 else tuple(sorted(weights))


@dataclass(frozen=True)
class Expected:
    """By brute force; a pair is left and right -> (distance, similarity, packed kind)."""

    copy_of: list[int]
    pairs: dict[tuple[int, int], tuple[int, float | None, int]]
    group_of: list[int]
    sizes: dict[int, int]
    loose: set[int]


def brute_force(rows: Sequence[Row], rule: MatchRule) -> Expected:
    first: dict[int, int] = {}
    for i, row in enumerate(rows):
        first.setdefault(row.digest, i)
    copy_of = [
        first[row.digest] if row.digest and first[row.digest] != i else NO_ROW for i, row in enumerate(rows)
    ]
    pairs = {}
    heads = [i for i, row in enumerate(rows) if row.fingerprint is not None and copy_of[i] == NO_ROW]
    for a, b in combinations(heads, 2):
        distance = ((rows[a].fingerprint or 0) ^ (rows[b].fingerprint or 0)).bit_count()
        is_proposed = distance <= rule.radius or meet(rows[a].sketch, rows[b].sketch)
        if is_proposed and rows[a].within == rows[b].within:
            is_confirmed, score = rule.compare(rows[a], rows[b])
            if is_confirmed:
                pairs[a, b] = (distance, score, rule.kind(rows[a], rows[b]))
    roots = components(len(rows), list(pairs))
    sizes = {root: roots.count(root) for root in set(roots)}
    loose = {a for a in roots if any(root == a != i and (a, i) not in pairs for i, root in enumerate(roots))}
    links = [(head, i) for i, head in enumerate(copy_of) if head != NO_ROW]
    groups = components(len(rows), [*pairs, *links])
    return Expected(
        copy_of, pairs, [root if groups.count(root) > 1 else NO_ROW for root in groups], sizes, loose
    )


def components(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each row the first of its component."""
    roots = list(range(count))
    for a, b in pairs:
        low, high = sorted((roots[a], roots[b]))
        roots = [low if root == high else root for root in roots]
    return roots


def pairs_of(found: Matches) -> dict[tuple[int, int], tuple[int, float | None, int]]:
    pairs = found.pairs
    keys = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    scores = [None if np.isnan(score) else score for score in pairs.similarities.tolist()]
    assert len(keys) == len(set(keys))
    values = zip(pairs.distances.tolist(), scores, pairs.kinds.tolist(), strict=True)
    return dict(zip(keys, values, strict=True))
