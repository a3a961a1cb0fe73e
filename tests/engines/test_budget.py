"""The budget of the search for pairs: how rows are divided into slices."""

from random import Random

import numpy as np
import pytest

from db_dedup.flow.matching.budget import slices_within


@pytest.mark.parametrize("most_rows", [None, 2])
def test_slices_within_an_amount(most_rows: int | None) -> None:
    chance = Random(1)
    amounts = [chance.choice([0, 1, 5, 30]) for _ in range(200)]
    slices = list(slices_within(np.array(amounts, np.int64), 10, most_rows))
    assert [row for first, last in slices for row in range(first, last)] == list(range(200))
    for first, last in slices:
        assert last == first + 1 or sum(amounts[first:last]) <= 10
        assert last - first <= (most_rows or 200)
    assert list(slices_within(np.empty(0, np.int64), 10)) == []
