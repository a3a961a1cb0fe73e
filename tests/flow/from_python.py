"""Calls of functions that only kernels call."""

from typing import Any

import numba as nb


def callable_from_python(function: Any) -> Any:
    """The same function as a test can call it, compiled when it is called."""
    return nb.njit(function.py_func)
