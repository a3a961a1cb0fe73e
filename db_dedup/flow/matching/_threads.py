"""Call a function for some items in threads."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")


def in_threads(
    threads: int, function: Callable[..., _Result], *arguments: Iterable[object]
) -> Generator[_Result, None, None]:
    """Yield what `map` does; the function is called in so many threads, or in this one.

    Only kernels and functions of numpy let another thread work at the same time. At the end of the iteration,
    however it ends, no thread is left.
    """
    if threads == 1:
        yield from map(function, *arguments)
        return
    with ThreadPoolExecutor(threads, "db-dedup-match") as pool:
        yield from pool.map(function, *arguments)
