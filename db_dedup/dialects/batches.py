"""Rows on their way into a table, cut into statements."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

_Item = TypeVar("_Item")

Rows = Iterable[Sequence[Any]]
"""Driver-ready values: fingerprints signed, digests as bytes."""


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Lists of at most `size` items, in their order."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
