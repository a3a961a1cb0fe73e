"""The answer for a whole table: copies, pairs, groups, and what is left out of large ones."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from db_dedup.engines.embedded import matching
from db_dedup.engines.embedded.matching import NO_ROW, Matches, MatchRule, Table, match_table
from db_dedup.flow.features import Features
from db_dedup.flow.fingerprint import fingerprint_rows
from db_dedup.flow.sketches import NO_SKETCHES
from db_dedup.progress import NullProgress
from tests.engines.reference import Row, brute_force, components, pairs_of, random_rows, table_of
from tests.flow.reference import features_of

MEASURES = ["jaccard", "overlap", "cosine", None]
NEVER = 10**9


def match(rows: Sequence[Row] | Table, rule: MatchRule) -> Matches:
    table = rows if isinstance(rows, Table) else table_of(rows)
    return match_table(table, rule, NullProgress())


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("radius", [0, 3, 7, 11])
@pytest.mark.parametrize("with_sketches", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_whole_answer(seed: int, with_sketches: bool, radius: int, measure: str | None) -> None:
    chance = Random(seed)
    rows = random_rows(chance, chance.choice([5, 40, 90]), with_sketches=with_sketches)
    rule = MatchRule(radius, measure, chance.choice([0.3, 0.5, 0.8]), NEVER)
    found, expected = match(rows, rule), brute_force(rows, rule)
    assert found.copy_of.tolist() == expected.copy_of
    assert pairs_of(found) == expected.pairs
    assert found.group_of.tolist() == expected.group_of
    assert set(np.flatnonzero(found.is_loose).tolist()) == expected.loose
    assert not found.is_abridged.any()


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("budget", [(4, 0), (4, 1), (0, 3), (NEVER, 0)])
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_long_runs_are_looked_for_by_their_rarest_features(
    seed: int, budget: tuple[int, int], measure: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_LONGEST_COMPARED", budget[0])
    monkeypatch.setattr(matching, "_COMPARISONS_A_ROW", budget[1])
    monkeypatch.setattr(matching, "_ROWS_A_SEARCH", 7)
    rows = random_rows(Random(seed), 90, with_sketches=True)
    rule = MatchRule(0, measure, 0.5, NEVER)
    found, expected = match(rows, rule), brute_force(rows, rule)
    assert pairs_of(found) == expected.pairs
    assert found.group_of.tolist() == expected.group_of


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("abridge_above", [2, 3, 5])
@pytest.mark.parametrize("seed", range(6))
def test_large_groups_keep_the_pairs_that_connect_them(
    seed: int, abridge_above: int, measure: str | None
) -> None:
    rows = random_rows(Random(seed), 80, with_sketches=seed % 2 == 1)
    rule = MatchRule(7, measure, 0.4, abridge_above)
    found, expected = match(rows, rule), brute_force(rows, rule)
    assert found.group_of.tolist() == expected.group_of
    assert set(np.flatnonzero(found.is_loose).tolist()) == expected.loose
    abridged = {root for root, size in expected.sizes.items() if size > abridge_above}
    assert abridged
    assert set(np.flatnonzero(found.is_abridged).tolist()) == abridged

    kept = pairs_of(found)
    assert kept.items() <= expected.pairs.items()
    roots = components(len(rows), list(expected.pairs))
    assert components(len(rows), list(kept)) == roots
    for root in set(roots):
        size, count = expected.sizes[root], sum(roots[a] == root for a, _ in kept)
        assert count == (size - 1 if root in abridged else sum(roots[a] == root for a, _ in expected.pairs))


def test_the_random_tables_hold_all_there_is_to_see() -> None:
    rule = MatchRule(7, "jaccard", 0.4, NEVER)
    tables = [random_rows(Random(seed), 80) for seed in range(6)]
    answers = [brute_force(rows, rule) for rows in tables]
    assert all(len(expected.pairs) > 10 and expected.loose for expected in answers)
    assert all({row.within for row in rows} == {0, 1} for rows in tables)
    assert any(sum(row.digest == 0 for row in rows) > 1 for rows in tables)
    copies = [
        rows[i]
        for rows, expected in zip(tables, answers, strict=True)
        for i, head in enumerate(expected.copy_of)
        if head != NO_ROW
    ]
    assert {row.fingerprint is None for row in copies} == {True, False}


def test_copies_need_no_fingerprint_but_something_to_say() -> None:
    rows = [Row(None, 7, 0, {1: 1}), Row(None, 0, 0, {}), Row(None, 7, 0, {1: 1}), Row(None, 0, 0, {})]
    found = match(rows, MatchRule(11, None, 0, NEVER))
    assert found.copy_of.tolist() == [NO_ROW, NO_ROW, 0, NO_ROW]
    assert found.group_of.tolist() == [0, NO_ROW, 0, NO_ROW]
    assert pairs_of(found) == {}
    assert not found.is_loose.any()


def test_the_halves_of_a_digest_must_both_agree() -> None:
    rows = [Row(None, digest, 0, {1: 1}) for digest in (2, 3, 4, 2)]
    assert match(rows, MatchRule(3, None, 0, NEVER)).copy_of.tolist() == [NO_ROW, NO_ROW, NO_ROW, 0]


def test_a_zero_fingerprint_is_one() -> None:
    rows = [Row(0, 1, 0, {1: 1}), Row(None, 2, 0, {1: 1}), Row(1, 3, 0, {1: 1})]
    assert pairs_of(match(rows, MatchRule(3, None, 0, NEVER))) == {(0, 2): (1, None)}


def test_copies_belong_to_the_group_of_the_first() -> None:
    near, far = Row(0b1, 2, 0, {1: 1}), Row(2**63, 3, 0, {1: 1})
    rows = [Row(0, 1, 0, {1: 1}), near, far, near, near, far]
    found = match(rows, MatchRule(3, "jaccard", 1, abridge_above=2))
    assert found.group_of.tolist() == [0, 0, 0, 0, 0, 0]
    rows[2] = rows[5] = replace(far, fingerprint=2**63 | 0xFFF)
    found = match(rows, MatchRule(3, "jaccard", 1, abridge_above=2))
    assert found.group_of.tolist() == [0, 0, 2, 0, 0, 2]
    assert pairs_of(found) == {(0, 1): (1, 1.0)}
    assert not found.is_abridged.any(), "copies do not count"


def test_a_similarity_at_the_threshold_is_enough() -> None:
    rows = [Row(0, 1, 0, {1: 1, 2: 1}), Row(0, 2, 0, {2: 1, 3: 1, 4: 1, 5: 1})]
    assert pairs_of(match(rows, MatchRule(0, "jaccard", 0.2, NEVER))) == {(0, 1): (0, 0.2)}
    assert pairs_of(match(rows, MatchRule(0, "jaccard", 0.2000001, NEVER))) == {}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("count", [0, 1])
def test_few_rows(count: int, measure: str | None) -> None:
    found = match([Row(2**63, 1, 0, {1: 1})] * count, MatchRule(11, measure, 0, 2))
    assert found.copy_of.tolist() == found.group_of.tolist() == [NO_ROW] * count
    assert pairs_of(found) == {}
    assert found.is_loose.tolist() == found.is_abridged.tolist() == [False] * count


class Steps:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.amounts: dict[str, int] = {}

    def start(self, step: str, total: int | None) -> None:
        self.notes.append(f"{step} {total}")

    def advance(self, amount: int) -> None:
        self.amounts[self.notes[-1]] = self.amounts.get(self.notes[-1], 0) + amount

    def finish(self) -> None:
        self.notes.append("finished")


def near_equal_table(count: int) -> Table:
    """One template of sixty features, of which each row has one or two changed."""
    chance = np.random.default_rng(1)
    hashes = np.repeat(chance.integers(0, 2**64, (1, 60), np.uint64), count, axis=0)
    for _ in range(2):
        hashes[np.arange(count), chance.integers(0, 60, count)] = chance.integers(0, 2**64, count, np.uint64)
    features = Features(
        np.arange(count + 1, dtype=np.int64) * 60,
        np.sort(hashes, axis=1).ravel(),
        np.ones(count * 60, np.int64),
    )
    return Table(
        fingerprint_rows(features.starts, features.hashes, features.weights),
        np.ones(count, np.bool_),
        chance.integers(1, 2**63, (count, 2)).astype(np.uint64),
        np.zeros(count, np.int32),
        features,
        np.arange(count),
        NO_SKETCHES,
        np.zeros(count, np.int64),
    )


@pytest.mark.parametrize("measure", ["jaccard", None])
def test_near_equal_rows_do_not_cost_their_square(measure: str | None) -> None:
    count, steps = 20_000, Steps()
    found = match_table(near_equal_table(count), MatchRule(11, measure, 0.45, 1000), steps)
    assert steps.amounts.get("matching None", 0) < count, "candidates that were looked at"
    assert np.all(found.group_of == 0)
    assert found.pairs.left.size == count - 1
    assert np.flatnonzero(found.is_abridged).tolist() == [0]
    assert np.all(found.pairs.distances <= 11)
    assert measure is None or np.all(found.pairs.similarities >= 0.45)


def test_many_small_groups() -> None:
    """More rows than are looked through at a time."""
    count = 50_000
    fingerprints = np.repeat(np.random.default_rng(1).integers(0, 2**64, count // 2, np.uint64), 2)
    fingerprints[1::2] ^= np.uint64(1 << 63)
    single = features_of([{1: 1}])
    found = match(
        Table(
            fingerprints,
            np.ones(count, np.bool_),
            np.arange(2 * count, dtype=np.uint64).reshape(-1, 2),
            np.zeros(count, np.int32),
            single,
            np.zeros(count, np.int64),
            NO_SKETCHES,
            np.zeros(count, np.int64),
        ),
        MatchRule(3, "jaccard", 0.5, 1000),
    )
    order = np.argsort(found.pairs.left)
    assert found.pairs.left[order].tolist() == list(range(0, count, 2))
    assert found.pairs.right[order].tolist() == list(range(1, count, 2))
    assert np.all(found.pairs.distances == 1)
    assert found.group_of.tolist() == [i - i % 2 for i in range(count)]


def test_progress_reaches_what_it_promised() -> None:
    steps = Steps()
    rows = [Row(i // 2 << 20, i + 1, 0, {1: 1}) for i in range(8)]
    match_table(table_of(rows), MatchRule(0, "jaccard", 0.5, NEVER), steps)
    assert steps.notes == ["matching None", "finished", "pairs 8", "finished"]
    assert steps.amounts["pairs 8"] == 8
