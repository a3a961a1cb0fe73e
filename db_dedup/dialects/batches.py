"""Cut a stream of rows into statements."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_Item = TypeVar("_Item")


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Lists of at most `size` items, in their order."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
