"""Rows as one argument of a kernel, and the rule as a function that kernels call by its address."""

from __future__ import annotations

import pickle

import numba as nb
import numpy as np
import pytest

from db_dedup.flow._by_pointer import caller_of
from db_dedup.flow.compare.kernels import RowArrays
from db_dedup.flow.compare.rule import Rule
from db_dedup.records.calibration import PairSetting


def rows(places: object) -> RowArrays:
    empty = np.empty(0, np.int64)
    of_hashes = empty.astype(np.uint64)
    within = empty.astype(np.int32)
    return RowArrays(
        of_hashes, within, places, empty, of_hashes, empty,  # type: ignore[arg-type]
        empty, of_hashes, empty, of_hashes, empty, empty,
    )  # fmt: skip


@nb.njit
def sum_of_places(given):  # type: ignore[no-untyped-def]
    total = 0
    for place in given.places:
        total += place
    return total, given.within.size


def test_a_kernel_reads_the_arrays_whatever_their_layout() -> None:
    numbers = np.arange(10)
    read_only = np.arange(5)
    read_only.flags.writeable = False
    found = [sum_of_places(rows(p)) for p in (numbers, numbers[::2], numbers.astype(np.int32), read_only)]
    assert found == [(45, 0), (20, 0), (45, 0), (10, 0)]
    assert len(sum_of_places.signatures) == 1


def test_pickled_rows_have_an_address_of_their_own() -> None:
    one = rows(np.arange(4))
    other = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert other.address != one.address
    assert sum_of_places(other) == (6, 0)


def test_a_pickled_rule_has_no_address() -> None:
    rule = Rule(PairSetting(3, True, "char_overlap", 0.8))
    numbers = rule.numbers
    assert "numbers" in vars(rule)
    other = pickle.loads(pickle.dumps(rule))  # noqa: S301 - our own
    assert "numbers" not in vars(other)
    assert other.numbers == numbers


def test_a_function_at_an_address_takes_its_types_only() -> None:
    call = caller_of(nb.int64, (nb.int64, nb.float64))

    @nb.njit
    def kernel(address, number):  # type: ignore[no-untyped-def]
        return call(address, (1, number))

    with pytest.raises(nb.TypingError, match="takes float64, not unicode_type"):
        kernel(0, "a")
