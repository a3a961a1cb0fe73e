"""Compute the next item in a thread while the caller uses the one before."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")


def one_ahead(items: Iterator[_Item]) -> Generator[_Item, None, None]:
    """Yield the same items; from the second one on, each is computed while the caller uses the one before.

    Only kernels and functions of numpy let another thread work at the same time. At the end of the iteration,
    however it ends, no thread is left.
    """
    first = next(items, None)
    if first is None:
        return
    with ThreadPoolExecutor(1, "db-dedup-next") as thread:
        following = thread.submit(next, items, None)
        yield first
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item
