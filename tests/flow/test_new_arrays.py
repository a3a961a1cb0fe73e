"""Arrays that kernels make are those of numpy's functions."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pytest

from db_dedup.flow._new_arrays import empty, full, zeros

DTYPES = [np.bool_, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float64]
SIZES: list[Any] = [0, 1, 7, 4096]


def assert_new(found: Any, wanted: np.ndarray[Any, Any]) -> None:
    """Its type, its shape, and that its memory is given back with it."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert found.base.refcount == 1


@nb.njit
def make(shape, dtype):  # type: ignore[no-untyped-def]
    return empty(shape, dtype), zeros(shape, dtype)


@nb.njit
def make_full(shape, value, dtype):  # type: ignore[no-untyped-def]
    return full(shape, value, dtype)


@nb.njit
def make_like(array):  # type: ignore[no-untyped-def]
    return zeros(array.size, array.dtype), full((2, 3), -1, np.int32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_like_those_of_numpy(dtype: Any) -> None:
    for shape in [*SIZES, *((size, 4) for size in SIZES)]:
        for _ in range(3):  # memory that was used before is not zero
            some, none = make(shape, dtype)
            assert_new(some, np.empty(shape, dtype))
            assert_new(none, np.zeros(shape, dtype))
            np.testing.assert_array_equal(none, np.zeros(shape, dtype))
            some[:] = none[:] = 1


@pytest.mark.parametrize(
    ("value", "dtype"), [(-1, np.int32), (7, np.uint8), (2.5, np.float64), (np.nan, np.float64)]
)
def test_arrays_are_full_of_a_value(value: float, dtype: Any) -> None:
    for shape in [*SIZES, (3, 5)]:
        np.testing.assert_array_equal(
            make_full(shape, value, dtype), np.full(shape, value, dtype), strict=True
        )


def test_the_type_may_be_that_of_an_array_and_the_shape_constant() -> None:
    like, constant = make_like(np.arange(3, dtype=np.int16))
    np.testing.assert_array_equal(like, np.zeros(3, np.int16), strict=True)
    np.testing.assert_array_equal(constant, np.full((2, 3), -1, np.int32), strict=True)


@pytest.mark.parametrize(
    ("shape", "error"), [(-1, ValueError), ((3, -1), ValueError), (2**61, ValueError), (2**56, MemoryError)]
)
def test_a_shape_that_is_no_array_is_an_error(shape: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(shape, np.int64)
