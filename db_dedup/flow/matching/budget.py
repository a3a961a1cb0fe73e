"""How much memory the search for pairs may use, and how its steps divide that.

The figures of a step are upper bounds by the arrays that it has at a time. What every row takes, such as its
fingerprint and its group, is not part of the budget: decision 0081 lists it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates import sketches

MATCHING_MB: Final = 1024
"""The default, in megabytes."""

_BYTES_AN_ENTRY: Final = 40
"""What a hash and its row take while a part of the hashes is sorted."""
_BYTES_A_FOUND_PAIR: Final = 64
"""What a pair takes that a kernel finds: its arrays double when they are full, and are copied at the end."""
_LEAST_ENTRIES = 1 << 18
_LEAST_PAIRS = 1 << 16
"""Smaller parts would take more time and save little memory: these take ten megabytes and four."""
_MOST_PARTS: Final = 32
"""Each part reads all hashes, so more parts are made only where the memory asks for them."""


class Budget(NamedTuple):
    """What the search for pairs may use.

    Attributes:
        memory: bytes.
        threads: how many parts of the work are done at a time.
    """

    memory: int = MATCHING_MB << 20
    threads: int = 1

    def for_rows(self, row_count: int) -> Self:
        """Return the budget with fewer threads where the copies of the groups would take too much.

        Each thread joins rows in a copy of its own. Past a quarter of the memory the parts that the rest
        allows would be so small that to read all hashes for each takes longer than the threads save.
        """
        return self._replace(threads=max(1, min(self.threads, self.memory // 4 // (4 * max(row_count, 1)))))

    def entries_a_part(self, entry_count: int, row_count: int) -> int:
        """Return how many hashes a thread sorts at a time: half of the memory, less the copies of groups."""
        own = (self.memory // 2 - self.threads * 4 * row_count) // self.threads
        wanted = max(sketches.ENTRIES_A_PART, -(-entry_count // _MOST_PARTS))
        return max(_LEAST_ENTRIES, min(wanted, own // _BYTES_AN_ENTRY))

    @property
    def bitmap_bytes(self) -> int:
        """How many bytes of bit sets are in memory; more of them are in a temporary file."""
        return self.memory // 4

    @property
    def index_bytes(self) -> int:
        """How many bytes a thread's index of a long run has; rows beyond are indexed afterwards."""
        return self.memory // 2 // self.threads

    @property
    def pairs_a_part(self) -> int:
        """How many pairs a thread may find at a time.

        As many parts as threads are being found, and as many wait for those before them.
        """
        return max(_LEAST_PAIRS, self.memory // 2 // (2 * self.threads) // _BYTES_A_FOUND_PAIR)

    @property
    def held_bytes(self) -> int:
        """How many bytes of found pairs are in memory; more of them are in temporary files."""
        return self.memory // 8


DEFAULT: Final = Budget()


def slices_within(
    amounts: NDArray[np.int64], most: int, most_rows: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of slices of n rows, each of at most so much and so many rows, and at least one.

    Args:
        amounts: int64[n], how much each row adds.
        most: of a slice.
        most_rows: of a slice; None for any number.
    """
    ends = np.cumsum(amounts)
    first = 0
    while first < amounts.size:
        before = ends[first] - amounts[first]
        last = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        if most_rows is not None:
            last = min(last, first + most_rows)
        yield first, last
        first = last
