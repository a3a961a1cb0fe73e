"""Python's search for cyclic garbage, made rarer while a job holds a whole table in memory."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ALLOCATIONS: Final = 20_000
"""More than the tuples of most pages: with Python's 700, the rows of a page and everything that is imported
are searched again and again, which takes longer than reading them."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Search for cyclic garbage after so many allocations at the earliest; at the end, as often as before.

    The setting is one of the process. It stays where it is higher, or where the search is switched off.
    """
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(max(before[0], _ALLOCATIONS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
