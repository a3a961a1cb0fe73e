"""Rows with many long grams: their bit sets rule out no pair, and each pair is compared in one run."""

from random import Random

import pytest

from db_dedup.flow.matching import _join_sharing, match
from db_dedup.flow.matching.budget import Budget
from tests.engines.reference import MatchRule, Row, brute_force, pairs_of, table_of

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
