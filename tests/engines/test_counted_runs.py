"""Runs whose rows are compared only if they share enough other hashes: none of their pairs is lost."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from db_dedup.flow.candidates.sketches import least_in_common
from db_dedup.flow.matching import _join_sharing
from db_dedup.flow.matching.budget import Budget
from tests.engines.reference import MatchRule, Row, brute_force, pairs_of, table_of

RULE = MatchRule(0, "overlap", 0.5, 10**9)


def rows_of(chance: Random, count: int, tables: int = 1) -> list[Row]:
    """Rows that share some of thirty phrases, a few of which are in many rows; each phrase has two hashes.

    Their other hashes are their own, and decide how many a pair must share. Every fourth row has one of three
    even hashes, of which one is enough. The fingerprints are far apart.
    """
    phrases = [(chance.getrandbits(64) | 1, chance.getrandbits(64) | 1) for _ in range(30)]
    even = [chance.getrandbits(63) * 2 for _ in range(3)]
    weights = [30 / (i + 1) for i in range(30)]
    rows = []
    for digest in range(1, count + 1):
        shared = {
            each for phrase in chance.choices(phrases, weights, k=chance.randrange(5)) for each in phrase
        }
        shared |= {chance.choice(even)} if chance.random() < 0.25 else set()
        own = {chance.getrandbits(64) | 1 for _ in range(chance.choice([28, 40, 55, 70]))}
        features = {chance.randrange(9): 1, chance.getrandbits(64): 1}
        within = chance.randrange(tables)
        rows.append(Row(chance.getrandbits(64), digest, within, features, frozenset(shared | own)))
    return rows


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("shortest", [2, 5, 20])
@pytest.mark.parametrize("seed", range(8))
def test_no_pair_is_lost(
    seed: int, shortest: int, tables: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_join_sharing, "SHORTEST_COUNTED", shortest)
    rows = rows_of(Random(seed), 60, tables)
    found = RULE.match(table_of(rows), budget=Budget(threads=threads))
    expected = brute_force(rows, RULE)
    assert found.group_of.tolist() == expected.group_of
    assert pairs_of(found) == expected.pairs


def test_the_rows_need_different_numbers_of_hashes() -> None:
    rows = rows_of(Random(1), 60)
    assert {int(least_in_common(len(row.sketch))) for row in rows} >= {2, 3, 4, 5}
    roots = [root for root in brute_force(rows, RULE).group_of if root >= 0]
    assert 5 < len(set(roots)) < len(roots) / 2


@pytest.mark.parametrize("visits", [0, 10**9])
@pytest.mark.parametrize("longest", [2, 20, 10**6])
@pytest.mark.parametrize("seed", range(6))
def test_long_runs_are_searched_in_the_cheaper_way(
    seed: int, longest: int, visits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_join_sharing, "SHORTEST_COUNTED", 5)
    monkeypatch.setattr(_join_sharing, "_LONGEST_COMPARED", 2)
    monkeypatch.setattr(_join_sharing, "_LONGEST_UNJOINED", longest)
    monkeypatch.setattr(_join_sharing, "_VISITS_A_COMPARISON", visits)
    rows = [replace(row, sketch=frozenset(list(row.sketch)[:36])) for row in rows_of(Random(seed), 60)]
    assert RULE.match(table_of(rows)).group_of.tolist() == brute_force(rows, RULE).group_of


@pytest.mark.parametrize("memory", [400, 1 << 30])
def test_runs_that_the_memory_does_not_hold_are_compared_as_before(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_join_sharing, "SHORTEST_COUNTED", 5)
    counted = []
    join_counted: Callable[..., object] = vars(_join_sharing)["join_counted"]

    def noted(*given: object) -> object:
        counted.append(given)
        return join_counted(*given)

    monkeypatch.setattr(_join_sharing, "join_counted", noted)
    rows = rows_of(Random(3), 60)
    found = RULE.match(table_of(rows), budget=Budget(memory))
    assert found.group_of.tolist() == brute_force(rows, RULE).group_of
    assert bool(counted) == (memory > 400)


@pytest.mark.parametrize("longest", [0, 2_000])
@pytest.mark.parametrize("hashes", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("seed", range(4))
def test_all_rows_are_in_the_same_form(
    seed: int, hashes: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the form is as much as two rows must share, counting leaves most pairs, and is given up."""
    monkeypatch.setattr(_join_sharing, "SHORTEST_COUNTED", 2)
    monkeypatch.setattr(_join_sharing, "_LONGEST_COMPARED", longest)
    form = frozenset(2 * n + 1 for n in range(hashes))
    rows = [replace(row, sketch=row.sketch | form) for row in rows_of(Random(seed), 40)]
    assert RULE.match(table_of(rows)).group_of.tolist() == brute_force(rows, RULE).group_of


def test_the_rest_of_a_run_that_is_given_up_is_searched_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows share as many hashes as they must, so most comparisons are made before those of the pair."""
    monkeypatch.setattr(_join_sharing, "SHORTEST_COUNTED", 2)
    monkeypatch.setattr(_join_sharing, "_LONGEST_COMPARED", 0)
    chance = Random(1)
    rows = []
    for digest in range(1, 41):
        sketch = frozenset({1, 3, 5, *(chance.getrandbits(64) | 1 for _ in range(55))})
        features = {min(digest, 39): 1, 100 + digest: 1}
        rows.append(Row(chance.getrandbits(64), digest, 0, features, sketch))
    assert least_in_common(58) == 3
    assert list(pairs_of(RULE.match(table_of(rows)))) == [(38, 39)]
