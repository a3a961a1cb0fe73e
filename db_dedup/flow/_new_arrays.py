"""Arrays that kernels make. What np.empty, np.zeros and np.full do, without functions of their own.

numba compiles one of numpy's functions anew for each type of arguments, often for each constant among them,
and in each process. These three become a part of the kernel that calls them (decision 0105).
They raise ValueError for a negative shape or one of too many bytes, MemoryError if there is no memory.
"""

from collections.abc import Callable
from typing import Any, Final

from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl, _parse_shape

_call: Final[Any] = intrinsic  # its types give callers the first parameter, too


def _array_of(shape: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the types of an array and of its shape, which is an integer or a tuple of integers."""
    if isinstance(shape, types.BaseTuple):
        return types.Array(dtype.dtype, len(shape), "C"), types.UniTuple(types.intp, len(shape))
    return types.Array(dtype.dtype, 1, "C"), types.intp


def _generator(fill: Callable[[Any, Any, Any], None]) -> Any:
    """Return what generates the code of a call: memory for an array, and what `fill` adds."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        shape = _parse_shape(context, builder, signature.args[0], given[0])
        array = _empty_nd_impl(context, builder, signature.return_type, shape)
        fill(builder, array, given)
        return array._getvalue()

    return generate


def _fill_with_nothing(*_: Any) -> None:
    """Leave the memory as it is."""


def _fill_with_zeros(builder: Any, array: Any, _: Any) -> None:
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)


def _fill_with_value(builder: Any, array: Any, given: Any) -> None:
    with cgutils.for_range(builder, array.nitems) as loop:
        builder.store(given[1], builder.gep(array.data, [loop.index]))


@_call
def empty(_, shape, dtype):
    """Return a new array of this shape and type, its values undefined."""
    array, integers = _array_of(shape, dtype)
    return array(integers, dtype), _generator(_fill_with_nothing)


@_call
def zeros(_, shape, dtype):
    """Return a new array of zeros."""
    array, integers = _array_of(shape, dtype)
    return array(integers, dtype), _generator(_fill_with_zeros)


@_call
def full(_, shape, value, dtype):  # noqa: ARG001 - the value is converted to the type of the array
    """Return a new array of one value; not of bool."""
    array, integers = _array_of(shape, dtype)
    return array(integers, array.dtype, dtype), _generator(_fill_with_value)
