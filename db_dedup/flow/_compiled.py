"""How the kernels of the flow are compiled: by numba, when they are first called, into files that stay.

Each function that is compiled takes a tenth of a second or more, most of it outside LLVM, so that a lower
level of optimisation saves little. What saves time (decision 0054): no wrapper that nobody calls, no second
signature of the same kernel, and none of numpy's functions whose compiled form is long, such as argsort,
unique and a slice assigned to a slice.
"""

from typing import Any, Final

import numba as nb
from numba.core import event

from db_dedup import progress

_OPTIONS: Final[dict[str, Any]] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",  # no checks for a division by zero: kernels never divide by what may be zero
    "no_cfunc_wrapper": True,
}

_njit: Any = nb.njit  # its types leave out the two last options

kernel: Final[Any] = _njit(**_OPTIONS)
"""Decorates what Python calls."""

inner: Final[Any] = _njit(**_OPTIONS, no_cpython_wrapper=True)
"""Decorates what only kernels call. Without the wrapper a call from Python ends the process."""

scalar: Final[Any] = _njit(**_OPTIONS, no_cpython_wrapper=True, _nrt=False)
"""Decorates an `inner` function that makes no array, and that is called for pair after pair.

Without this numba counts the references to each array of `RowArrays` at each call, by atomic operations,
which took most of the time of a comparison.
"""


class _Report(event.Listener):
    """Reports the first compilation of this process."""

    def on_start(self, _: object) -> None:
        """Report that numba begins to compile; it does not when it finds a compiled kernel on the disk."""
        progress.report_compiling()

    def on_end(self, _: object) -> None:
        """Do nothing: the caller sees the result."""


event.register("numba:compile", _Report())
