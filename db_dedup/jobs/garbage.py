"""Let Python search for cyclic garbage less often while a job holds a whole table in memory."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_ALLOCATIONS: Final = 20_000
"""More than the tuples of most pages. By Python's default of 700, the rows of a page and all imported modules
would be searched again and again, which takes longer than to read the rows."""


class _Jobs:
    """How many jobs are running in threads of this process, and the setting before the first of them."""

    lock = Lock()
    count = 0
    before = (0, 0, 0)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Search for cyclic garbage only after `_ALLOCATIONS` allocations until the block ends.

    The setting belongs to the process, so the last of several jobs puts the former value back. A higher value
    is kept, and so is a search that is switched off.
    """
    with _Jobs.lock:
        if not _Jobs.count:
            _Jobs.before = before = gc.get_threshold()
            if before[0]:
                gc.set_threshold(max(before[0], _ALLOCATIONS), *before[1:])
        _Jobs.count += 1
    try:
        yield
    finally:
        with _Jobs.lock:
            _Jobs.count -= 1
            if not _Jobs.count:
                gc.set_threshold(*_Jobs.before)
