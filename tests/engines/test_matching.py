"""The answer for a whole table: copies, pairs, groups, and what is left out of large ones."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import IO

import numpy as np
import pytest

from db_dedup.flow.candidates import sketches
from db_dedup.flow.candidates.sketches import NO_SKETCHES
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.features.counting import Features
from db_dedup.flow.fingerprints.simhash import fingerprint_rows
from db_dedup.flow.matching import _join_sharing, spool
from db_dedup.flow.matching import budget as budgets
from db_dedup.flow.matching import match as matching
from db_dedup.flow.matching import pairs as pairs_module
from db_dedup.flow.matching.budget import Budget
from db_dedup.flow.matching.match import NO_ROW, Matches
from db_dedup.flow.matching.pairs import concatenate_pairs
from db_dedup.records.kinds import COPY, PARTIAL, UNKNOWN, ExcludedKind
from db_dedup.temporary_files import temporary_file
from tests.engines.reference import MatchRule, Row, brute_force, components, pairs_of, random_rows, table_of
from tests.flow.reference import empty_details, features_of

MEASURES = ["word_jaccard", "overlap", "cosine", "char_overlap", None]
NEVER = 10**9
RANDOM = [Random(i).getrandbits(50) for i in range(20)]


def match(rows: Sequence[Row] | ComparedRows, rule: MatchRule) -> Matches:
    table = rows if isinstance(rows, ComparedRows) else table_of(rows)
    return rule.match(table)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("radius", [0, 3, 7, 11])
@pytest.mark.parametrize("with_sketches", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_whole_answer(seed: int, with_sketches: bool, radius: int, measure: str | None) -> None:
    chance = Random(seed)
    rows = random_rows(
        chance, chance.choice([5, 40, 90]), with_sketches=with_sketches, with_symbols=seed % 2 == 1
    )
    threshold, short_threshold = chance.choice([0.3, 0.5, 0.8]), chance.choice([0.5, 0.75])
    kinds: list[tuple[ExcludedKind, ...]] = [(), ("partial", "other_place"), ("edited", "contained")]
    chosen = chance.choice(kinds)
    excluded = chosen if measure else ()
    rule = MatchRule(radius, measure, threshold, NEVER, short_threshold, True, excluded)
    found, expected = match(rows, rule), brute_force(rows, rule)
    assert found.copy_of.tolist() == expected.copy_of
    assert pairs_of(found) == expected.pairs
    assert found.group_of.tolist() == expected.group_of
    assert set(np.flatnonzero(found.is_loose).tolist()) == expected.loose
    assert not found.is_abridged.any()


def set_limits(monkeypatch: pytest.MonkeyPatch, compared: int, unjoined: int, comparisons: int) -> None:
    """How many rows a run has that is compared as a whole, or may be; comparisons for each row of others."""
    monkeypatch.setattr(_join_sharing, "_LONGEST_COMPARED", compared)
    monkeypatch.setattr(_join_sharing, "_LONGEST_UNJOINED", unjoined)
    monkeypatch.setattr(_join_sharing, "_COMPARISONS_A_ROW", comparisons)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("budget", [(4, 0), (4, 1), (0, 3), (NEVER, 0)])
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_long_runs_are_looked_for_by_their_rarest_features(
    seed: int, budget: tuple[int, int], measure: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, budget[0], NEVER if seed % 3 else budget[0] + 1, budget[1])
    monkeypatch.setattr(_join_sharing, "_VISITS_A_COMPARISON", [2, 0, NEVER][seed % 3])
    rows = random_rows(Random(seed), 90, with_sketches=True, with_symbols=True)
    excluded: tuple[ExcludedKind, ...] = ("contained", "other_place") if measure and seed % 2 else ()
    rule = MatchRule(0, measure, 0.5, NEVER, 0.75, True, excluded)
    found, expected = match(rows, rule), brute_force(rows, rule)
    assert pairs_of(found) == expected.pairs
    assert found.group_of.tolist() == expected.group_of


@pytest.mark.parametrize("measure", [measure for measure in MEASURES if measure])
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_very_different_sizes_share_a_hash(seed: int, measure: str) -> None:
    """Small rows are parts of large ones, so that bit sets of different sizes are compared."""
    chance = Random(seed)
    texts = [[chance.getrandbits(64) for _ in range(600)] for _ in range(3)]
    rows = []
    for digest in range(1, chance.choice([3, 4, 60])):
        size, text = chance.choice([1, 5, 20, 50, 130, 300, 600]), chance.choice(texts)
        first, kept = chance.randrange(601 - size), chance.choice([0.3, 0.6, 0.8, 0.97, 1.0])
        own = [
            key if chance.random() < kept else chance.getrandbits(64) for key in text[first : first + size]
        ]
        sketch = frozenset({1, chance.randrange(2, 9)})
        rows.append(Row(chance.getrandbits(64), digest, 0, dict.fromkeys(own, 1), sketch))
    rule = MatchRule(0, measure, chance.choice([0.3, 0.57, 0.8]), NEVER)
    found, expected = match(rows, rule), brute_force(rows, rule)
    assert pairs_of(found) == expected.pairs
    assert found.group_of.tolist() == expected.group_of
    assert len(rows) < 10 or measure == "cosine" or expected.pairs


@pytest.mark.parametrize(
    ("abridge_above", "measure"),
    # The floor of `char_overlap` leaves no group of more than five of these rows.
    [case for case in product([2, 3, 5], MEASURES) if case != (5, "char_overlap")],
)
@pytest.mark.parametrize("seed", range(6))
def test_large_groups_keep_the_pairs_that_connect_them(
    seed: int, abridge_above: int, measure: str | None
) -> None:
    rows = random_rows(Random(seed), 80, with_sketches=seed % 2 == 1)
    rule = MatchRule(7, measure, 0.4, abridge_above, long_grams=True)
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
    rule = MatchRule(7, "word_jaccard", 0.4, NEVER)
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
    assert pairs_of(match(rows, MatchRule(3, None, 0, NEVER))) == {(0, 2): (1, None, UNKNOWN)}


def test_copies_belong_to_the_group_of_the_first() -> None:
    near, far = Row(0b1, 2, 0, {1: 1}), Row(2**63, 3, 0, {1: 1})
    rows = [Row(0, 1, 0, {1: 1}), near, far, near, near, far]
    found = match(rows, MatchRule(3, "word_jaccard", 1, abridge_above=2))
    assert found.group_of.tolist() == [0, 0, 0, 0, 0, 0]
    rows[2] = rows[5] = replace(far, fingerprint=2**63 | 0xFFF)
    found = match(rows, MatchRule(3, "word_jaccard", 1, abridge_above=2))
    assert found.group_of.tolist() == [0, 0, 2, 0, 0, 2]
    assert pairs_of(found) == {(0, 1): (1, 1.0, COPY)}
    assert not found.is_abridged.any(), "copies do not count"


def test_a_similarity_at_the_threshold_is_enough() -> None:
    rows = [Row(0, 1, 0, {1: 1, 2: 1}), Row(0, 2, 0, {2: 1, 3: 1, 4: 1, 5: 1})]
    assert pairs_of(match(rows, MatchRule(0, "word_jaccard", 0.2, NEVER))) == {(0, 1): (0, 0.2, PARTIAL)}
    assert pairs_of(match(rows, MatchRule(0, "word_jaccard", 0.2000001, NEVER))) == {}


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


def near_equal_table(count: int) -> ComparedRows:
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
    return ComparedRows(
        fingerprint_rows(features.starts, features.hashes, features.weights),
        np.ones(count, np.bool_),
        chance.integers(1, 2**63, (count, 2)).astype(np.uint64),
        np.zeros(count, np.int32),
        features,
        empty_details(count),
        np.arange(count),
        NO_SKETCHES,
        np.zeros(count, np.int64),
    )


@pytest.mark.parametrize("measure", ["word_jaccard", None])
def test_near_equal_rows_do_not_cost_their_square(measure: str | None) -> None:
    count, steps = 20_000, Steps()
    found = MatchRule(11, measure, 0.45, 1000).match(near_equal_table(count), steps)
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
        ComparedRows(
            fingerprints,
            np.ones(count, np.bool_),
            np.arange(2 * count, dtype=np.uint64).reshape(-1, 2),
            np.zeros(count, np.int32),
            single,
            empty_details(1),
            np.zeros(count, np.int64),
            NO_SKETCHES,
            np.zeros(count, np.int64),
        ),
        MatchRule(3, "word_jaccard", 0.5, 1000),
    )
    order = np.argsort(found.pairs.left)
    assert found.pairs.left[order].tolist() == list(range(0, count, 2))
    assert found.pairs.right[order].tolist() == list(range(1, count, 2))
    assert np.all(found.pairs.distances == 1)
    assert found.group_of.tolist() == [i - i % 2 for i in range(count)]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_hashes_in_many_parts_are_joined_in_threads(
    seed: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread joins groups of its own; at the end they are those of all pairs."""
    monkeypatch.setattr(matching, "_ROWS_WORTH_THREADS", 0)
    monkeypatch.setattr(sketches, "ENTRIES_A_PART", 20)
    if seed > 1:  # some runs are searched by rare features
        set_limits(monkeypatch, 3, 3 * (seed % 2), 1)
    rows = random_rows(Random(seed), 90, with_sketches=True)
    rule = MatchRule(3, "word_jaccard", 0.5, 1000)
    running = threading.active_count()
    found = rule.match(table_of(rows), budget=Budget(threads=threads))
    expected = brute_force(rows, rule)
    assert pairs_of(found) == expected.pairs
    assert found.group_of.tolist() == expected.group_of
    assert threading.active_count() == running


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_the_answer_does_not_depend_on_the_memory(
    seed: int, threads: int, measure: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With next to no memory every step works in many parts, and all that can be is in files."""
    monkeypatch.setattr(matching, "_ROWS_WORTH_THREADS", 0)
    monkeypatch.setattr(budgets, "_LEAST_ENTRIES", 30)
    monkeypatch.setattr(budgets, "_LEAST_PAIRS", 3)
    monkeypatch.setattr(Budget, "for_rows", lambda budget, _: budget)  # else it would take one thread
    if seed > 1:  # some runs are searched by rare features, a few rows at a time
        set_limits(monkeypatch, 3, 3 * (seed % 2), seed % 2)
    files: list[IO[bytes]] = []
    open_file = temporary_file

    def opened() -> IO[bytes]:
        files.append(open_file())
        return files[-1]

    monkeypatch.setattr(spool, "temporary_file", opened)
    monkeypatch.setattr(pairs_module, "temporary_file", opened)
    rows = random_rows(Random(seed), 90, with_sketches=True, with_symbols=True)
    rule = MatchRule(3, measure, 0.5, NEVER, 0.75, True)
    little, much = (rule.match(table_of(rows), budget=Budget(n, threads)) for n in (400, 1 << 30))
    assert len(files) == 5 + (measure is not None), "the columns of the pairs, and the bit sets"
    assert all(file.closed for file in files)
    assert pairs_of(little) == pairs_of(much) == brute_force(rows, rule).pairs
    assert little.group_of.tolist() == much.group_of.tolist()
    assert little.is_loose.tolist() == much.is_loose.tolist()
    assert list(pairs_of(little)) == list(pairs_of(much)), "the same order"


def test_fewer_threads_for_more_rows() -> None:
    """The copies of the groups take at most a quarter of the memory."""
    budget = Budget(1 << 20, 4)
    assert [budget.for_rows(rows).threads for rows in (0, 16_384, 16_385, 40_000, 10**9)] == [4, 4, 3, 1, 1]


@pytest.mark.parametrize("threads", [2, 3])
def test_the_pairs_that_connect_a_large_group_do_not_depend_on_the_faster_thread(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_ROWS_WORTH_THREADS", 0)
    monkeypatch.setattr(sketches, "ENTRIES_A_PART", 20)
    rows = [
        Row(random_bits << 8, i + 1, 0, {1: 1, 2: 1}, frozenset({8, 16, 32}))
        for i, random_bits in enumerate(RANDOM)
    ]
    rule = MatchRule(0, "word_jaccard", 0.5, 5)
    found = [pairs_of(rule.match(table_of(rows), budget=Budget(threads=threads))) for _ in range(5)]
    assert len(found[0]) == len(rows) - 1
    assert all(pairs == found[0] for pairs in found)


def test_progress_reaches_what_it_promised() -> None:
    steps = Steps()
    rows = [Row(i // 2 << 20, i + 1, 0, {1: 1}) for i in range(8)]
    MatchRule(0, "word_jaccard", 0.5, NEVER).match(table_of(rows), steps)
    assert steps.notes == ["matching None", "finished", "pairs 8", "finished"]
    assert steps.amounts["pairs 8"] == 8


def test_short_rows_that_differ_in_many_symbols_are_joined_by_the_measure() -> None:
    one, other = tuple(range(1, 25)), (*range(1, 19), *range(31, 37))
    rows = [
        Row(fingerprint, number, 0, dict.fromkeys(symbols, 1), frozenset([3]), symbols)
        for number, (fingerprint, symbols) in enumerate([(0, one), (2**64 - 1, other)], 1)
    ]
    rule = MatchRule(0, "char_overlap", 0.57, NEVER, 0.75)
    assert pairs_of(match(rows, rule)).keys() == brute_force(rows, rule).pairs.keys() == {(0, 1)}


@pytest.mark.parametrize("measure", ["char_overlap", None])
@pytest.mark.parametrize("with_sketches", [False, True])
def test_all_pairs_of_a_group_are_those_of_brute_force(
    with_sketches: bool, measure: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_ROWS_A_BLOCK", 7)
    rule = MatchRule(3, measure, 0.4, NEVER)
    rows = random_rows(Random(3), 90, with_sketches=with_sketches)
    distinct = list({row.digest: row for row in rows}.values())
    parts = [*matching.all_pairs(table_of(distinct), rule.rule)]
    found = concatenate_pairs(parts)
    assert len(parts) > 1
    places = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert places == sorted(places), "the order of the pairs does not depend on the index"
    assert set(places) == {(a, b) for a, b, *_ in brute_force(distinct, rule).pairs}
