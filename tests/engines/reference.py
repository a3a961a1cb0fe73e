"""Random tables, and their answer by brute force: Python sets, every pair of rows, no compiled kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np

from db_dedup.engines.embedded.matching import NO_ROW, Matches, MatchRule, Table
from db_dedup.flow.sketches import Sketches
from tests.flow.reference import Weights, features_of, meet, similarity


@dataclass(frozen=True)
class Row:
    fingerprint: int | None
    digest: int
    within: int
    features: Weights
    sketch: frozenset[int] = frozenset()


def table_of(rows: Sequence[Row]) -> Table:
    """The features and sketches stand in another order than the rows."""
    places = np.array(Random(len(rows)).sample(range(len(rows)), len(rows)), np.int64)
    features: list[Weights] = [{} for _ in rows]
    for row, place in zip(rows, places.tolist(), strict=True):
        features[place] = row.features
    sketched = Random(len(rows) + 1).sample(range(len(rows)), len(rows))
    sketches = [b""] * len(rows)
    for row, place in zip(rows, sketched, strict=True):
        sketches[place] = np.array(sorted(row.sketch), np.uint64).tobytes()
    return Table(
        np.array([row.fingerprint or 0 for row in rows], np.uint64),
        np.array([row.fingerprint is not None for row in rows], np.bool_),
        np.array([(row.digest >> 1, row.digest & 1) for row in rows], np.uint64).reshape(-1, 2),
        np.array([row.within for row in rows], np.int32),
        features_of(features),
        places,
        Sketches.of_bytes(sketches),
        np.array(sketched, np.int64),
    )


def random_rows(chance: Random, count: int, *, with_sketches: bool = False) -> list[Row]:
    """Clusters of rows that differ in a few bits and features; some are copies, some have too little text."""
    rows: list[Row] = []
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
            )
        )
    return rows


def random_sketch(chance: Random, centres: int) -> frozenset[int]:
    """24 bands, of which others have one at most, and passages: two rows share enough of them, or too few."""
    own = [2 * chance.getrandbits(60) for _ in range(23)]
    passages = [2 * n + 1 for n in chance.sample(range(300), chance.choice([0, 2, 5, 20, 40]))]
    return frozenset([2 * chance.randrange(4 * centres), *own, *passages])


@dataclass(frozen=True)
class Expected:
    """By brute force; a pair is left and right -> (distance, similarity)."""

    copy_of: list[int]
    pairs: dict[tuple[int, int], tuple[int, float | None]]
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
            score = (
                None if rule.measure is None else similarity(rule.measure, rows[a].features, rows[b].features)
            )
            if score is None or score >= rule.threshold:
                pairs[a, b] = (distance, score)
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


def pairs_of(found: Matches) -> dict[tuple[int, int], tuple[int, float | None]]:
    pairs = found.pairs
    keys = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    scores = [None if np.isnan(score) else score for score in pairs.similarities.tolist()]
    assert len(keys) == len(set(keys))
    return dict(zip(keys, zip(pairs.distances.tolist(), scores, strict=True), strict=True))
