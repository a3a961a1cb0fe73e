"""Rows with many long grams: their bit sets rule out no pair, and each pair is compared in one run."""

from collections.abc import Callable, Iterable
from itertools import combinations
from random import Random
from typing import Any

import pytest

from db_dedup.flow.matching import _join_sharing, match
from db_dedup.flow.matching.budget import Budget
from db_dedup.flow.threads import in_threads
from tests.engines.comparisons import count_comparisons
from tests.engines.reference import MatchRule, Row, brute_force, pairs_of, table_of
from tests.flow.reference import meet

RULE = MatchRule(0, "char_overlap", 0.5, 10**9, long_grams=True)


def rows_of(chance: Random, count: int) -> list[Row]:
    """Rows that share features and hashes; of each three the long grams are more or less alike.

    Their numbers of long grams, and so the sizes of the bit sets, differ. Some of their odd hashes are in
    many rows, some in those three, and forty in one alone; some have one of a few even ones.
    """
    frequent = _odd(chance, 30)
    rows = []
    for digest in range(1, count + 1):
        if digest % 3 == 1:
            letter, rare = _long_grams(chance, chance.choice([120, 300, 900])), _odd(chance, 6)
        kept = chance.sample(letter, int(len(letter) * chance.uniform(0.4, 1)))
        long_grams = frozenset(kept + _long_grams(chance, chance.randrange(len(letter))))
        sketch = {*chance.sample(frequent, chance.randrange(8)), *rare[chance.randrange(4) :]}
        sketch |= {*_odd(chance, 40), *chance.choice([(), (), (), (0,), (2,)])}
        features = {chance.randrange(4): 1, 9: 1}
        rows.append(Row(chance.getrandbits(64), digest, 0, features, frozenset(sketch), (), long_grams))
    return rows


def _odd(chance: Random, count: int) -> list[int]:
    return [chance.getrandbits(64) | 1 for _ in range(count)]


def _long_grams(chance: Random, count: int) -> list[int]:
    return [chance.getrandbits(64) for _ in range(count)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shortest", [2, 10, 10**6])
@pytest.mark.parametrize("seed", range(6))
def test_no_pair_is_lost(seed: int, shortest: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_join_sharing, "SHORTEST_COUNTED", shortest)
    monkeypatch.setattr(match, "_ROWS_WORTH_THREADS", 0)
    rows = rows_of(Random(seed), 60)
    expected = brute_force(rows, RULE)
    found = RULE.match(table_of(rows), budget=Budget(threads=threads))
    assert found.group_of.tolist() == expected.group_of
    assert pairs_of(found) == expected.pairs


def test_most_groups_are_small() -> None:
    for seed in range(6):
        expected = brute_force(rows_of(Random(seed), 60), RULE)
        assert len(expected.pairs) > 5
        assert len(set(expected.group_of)) > 7


def test_a_pair_is_compared_once_or_ruled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_join_sharing, "SHORTEST_COUNTED", 10**6)
    rows = rows_of(Random(1), 60)
    comparisons = count_comparisons(rows, RULE)
    apart = []
    for a, b in combinations(range(len(rows)), 2):
        one, other, count = rows[a], rows[b], comparisons[a, b]
        if not meet(one.sketch, other.sketch):
            assert count == 0
        elif RULE.compare(one, other)[0]:
            assert count == 1
        else:
            assert count <= 1
            if RULE.are_long(one, other) and not one.long_grams & other.long_grams:
                apart.append(count)
    assert len(apart) > 100
    assert sum(apart) < len(apart) / 4


@pytest.mark.parametrize(("hashes", "threads"), [(2000, 2), (10**6, 1)])
def test_few_long_rows_are_matched_in_threads(
    hashes: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(Random(1), 60)
    assert table_of(rows).sketches.values.size > 2000
    used = []

    def in_so_many(count: int, work: Callable[..., Any], *arguments: Iterable[Any]) -> Any:
        used.append(count)
        return in_threads(count, work, *arguments)

    monkeypatch.setattr(match, "_HASHES_WORTH_THREADS", hashes)
    monkeypatch.setattr(_join_sharing, "in_threads", in_so_many)
    RULE.match(table_of(rows), budget=Budget(threads=2))
    assert set(used) == {threads}
