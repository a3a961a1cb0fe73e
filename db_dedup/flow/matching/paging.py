"""How the features of rows are read where they do not fit into memory.

The features of a table are in a file that is mapped into memory. Of ten million rows they may be larger than
the memory, and the rows of pairs are anywhere in the file. Then two things decide how long a search takes:
that the system reads no more than it needs, and that a disk has many requests at a time.
"""

import mmap
import os
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.compare.kernels import RowArrays
from db_dedup.flow.control_groups import group_folders
from db_dedup.flow.matching._pairs import read_features
from db_dedup.flow.threads import in_threads, split_evenly

PAIRS_AT_A_TIME: Final = 50_000
"""The features of the rows of so many pairs are some hundred megabytes."""
_SHARE_OF_MEMORY: Final = 2
"""Features that take more than half of the memory may not stay there: the database needs some, too."""
_REQUESTS_AT_A_TIME: Final = 32
_UNKNOWN_MEMORY: Final = 1 << 62


def expect_reads(values: NDArray[np.generic], *, in_order: bool) -> None:
    """Tell the system how an array will be read; one that is not mapped from a file is left as it is.

    For each row that is not in memory the system otherwise reads what is around it, too, up to some
    megabytes, which drives out what is needed next.

    Args:
        values: the array.
        in_order: from the first to the last value, and not row by row in any order.
    """
    base = _map_of(values)
    if base is not None and hasattr(mmap, "MADV_RANDOM"):
        base.madvise(mmap.MADV_NORMAL if in_order else mmap.MADV_RANDOM)


def fits_into_memory(values: NDArray[np.generic]) -> bool:
    """Return whether an array is in memory, or in a file that will stay in the memory of the system."""
    return _map_of(values) is None or _SHARE_OF_MEMORY * values.nbytes <= _memory_bytes()


def prefetch(numbers: NDArray[np.int32], rows: RowArrays) -> None:
    """Read the features of some rows into memory, many rows at a time.

    Args:
        numbers: int32[n], of the rows.
        rows: of the table.
    """
    bounds = split_evenly(0, numbers.size, _REQUESTS_AT_A_TIME)
    parts = bounds[:-1], bounds[1:], repeat(numbers), repeat(rows)
    for _ in in_threads(_REQUESTS_AT_A_TIME, read_features, *parts):
        pass


def _map_of(values: NDArray[np.generic]) -> mmap.mmap | None:
    base: Any = values
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def _memory_bytes() -> int:
    """Return how much memory this process may use; without an answer from the system, more than any array.

    A container that is given some gigabytes still sees all memory of its machine.
    """
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        machine = _UNKNOWN_MEMORY
    return min([machine, *map(_limit, group_folders("memory"))])


def _limit(group: Path) -> int:
    """Return the limit of a control group in bytes."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # without a limit it is the word "max"
            return int((group / name).read_text())
    return _UNKNOWN_MEMORY
