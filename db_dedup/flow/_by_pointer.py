"""Many arrays as one argument of a kernel, and compiled functions that kernels call by their addresses.

Both are for short compilation (decision 0054). numba passes a named tuple of twelve arrays as 84 values, and
counts references to each array wherever the tuple is passed on: most of the code of such a kernel, and of
the time to compile it, is for that. Here the kernel has a pointer to a block of addresses and sizes. And
numba copies each function that a kernel calls into the kernel, and optimises it again there. A function that
is called by its address is compiled once.
"""

from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_untracked, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox


class ArraysType(types.Type):
    """The type of a class derived from `Arrays`, in kernels."""

    def __init__(self, arrays: type["Arrays"]) -> None:
        self.arrays = arrays
        super().__init__(f"{arrays.__module__}.{arrays.__qualname__}{arrays.dtypes()}")


class Arrays:
    """Base of dataclasses whose fields are all one-dimensional arrays, NDArray[...].

    Kernels read the arrays like those of a named tuple. They are the arrays that the object had when it was
    made, and a kernel may not keep them: numba does not count references to them.
    """

    if TYPE_CHECKING:  # elsewhere it would be a field of the dataclass

        @property
        def address(self) -> int:
            """The address of the block of addresses and sizes."""

    @classmethod
    def dtypes(cls) -> dict[str, str]:
        """Return name -> dtype of the arrays."""
        return {name.name: np.dtype(get_args(get_args(name.type)[1])[0]).str for name in fields(cls)}  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        """Make the block: for each array its address and its size."""
        block = []
        for name, dtype in self.dtypes().items():
            array = np.ascontiguousarray(getattr(self, name), dtype)
            object.__setattr__(self, name, array)
            block += [array.ctypes.data, array.size]
        self._block: np.ndarray[Any, np.dtype[np.int64]]
        object.__setattr__(self, "_block", np.array(block, np.int64))
        object.__setattr__(self, "address", self._block.ctypes.data)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays only: their copies have other addresses."""
        return type(self), tuple(getattr(self, name) for name in self.dtypes())


register_model(ArraysType)(models.OpaqueModel)


@typeof_impl.register(Arrays)
def _typeof(value: Arrays, _: Any) -> ArraysType:
    return ArraysType(type(value))


@unbox(ArraysType)
def _unbox(_: Any, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(pointer)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = ArraysType

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
        """Return the type of an array; None if there is none of this name."""
        dtype = value.arrays.dtypes().get(attr)
        return dtype and types.Array(nb.from_dtype(np.dtype(dtype)), 1, "C")


@lower_getattr_generic(ArraysType)
def _getattr(context: Any, builder: Any, kind: ArraysType, value: Any, name: str) -> Any:
    word = ir.IntType(64)
    place = 2 * list(kind.arrays.dtypes()).index(name)
    block = builder.bitcast(value, word.as_pointer())
    data, size = (_constant(builder, block, place + offset) for offset in range(2))
    array_type = types.Array(nb.from_dtype(np.dtype(kind.arrays.dtypes()[name])), 1, "C")
    array = context.make_array(array_type)(context, builder)
    item = context.get_constant(types.intp, array_type.dtype.bitwidth // 8)
    nb.np.arrayobj.populate_array(
        array, builder.inttoptr(data, array.data.type), [size], [item], item, meminfo=None
    )
    return impl_ret_untracked(context, builder, array_type, array._getvalue())


def _constant(builder: Any, block: Any, place: int) -> Any:
    """Read a word of a block. It never changes, so that LLVM may read it before a loop."""
    loaded = builder.load(builder.gep(block, [ir.Constant(ir.IntType(64), place)]))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def address_of(function: Any, arguments: tuple[types.Type, ...]) -> int:
    """Return the address of an `addressed` function, compiled for these types if that was not done yet."""
    function.compile(arguments)
    compiled = function.overloads[arguments]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def caller_of(result: types.Type, arguments: tuple[types.Type, ...]) -> Any:
    """Return a function for kernels, call(address, values): it calls the function at an address.

    The address must be an argument of the kernel: the files of compiled kernels outlive the process. Integers
    of another width are converted; other values must have the types, or the kernel is not compiled.
    """

    @intrinsic
    def call(typing_context, address, values):  # noqa: ARG001 - numba's signature
        for given, wanted in zip(values.types, arguments, strict=True):
            if given != wanted and not isinstance(given, types.Integer):
                message = f"the function at the address takes {wanted}, not {given}"
                raise TypingError(message)

        def generate(context, builder, signature, given):
            values = cgutils.unpack_tuple(builder, given[1])
            converted = [
                context.cast(builder, value, have, want)
                for value, have, want in zip(values, signature.args[1].types, arguments, strict=True)
            ]
            function_type = context.call_conv.get_function_type(result, arguments)
            function = builder.inttoptr(given[0], function_type.as_pointer())
            status, returned = context.call_conv.call_function(
                builder, function, result, arguments, converted
            )
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return returned

        return result(address, values), generate

    return call
