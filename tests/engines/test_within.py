"""Rows that must agree in `within`: those that do not are not even compared."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from db_dedup.flow.candidates.blocks import candidate_pairs
from db_dedup.flow.matching import match as matching
from tests.engines.reference import MatchRule, Row, pairs_of, table_of

COUNT = 300


def test_rows_of_other_values_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows have one fingerprint, and two each have one value."""
    compared: list[int] = []

    def counted(*arguments: Any) -> Iterator[Any]:
        for left, right in candidate_pairs(*arguments):
            compared.append(left.size)
            yield left, right

    monkeypatch.setattr(matching, "candidate_pairs", counted)
    rows = [
        Row(0, number + 1, number // 2, {1: 1, 2 + number % 2: 1}, frozenset()) for number in range(COUNT)
    ]
    found = MatchRule(3, "word_jaccard", 0.3, 10**9).match(table_of(rows))
    assert {tuple(sorted(pair[:2])) for pair in pairs_of(found)} == {
        (first, first + 1) for first in range(0, COUNT, 2)
    }
    assert np.sum(compared) <= COUNT
