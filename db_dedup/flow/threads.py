"""Start threads, and call a function for some items in threads."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from db_dedup.errors import DedupError

_Result = TypeVar("_Result")

_REFUSED: Final = "can't start new thread"
"""The message of Python's RuntimeError, which has no type of its own for it."""


@contextmanager
def starting_threads() -> Iterator[None]:
    """Raise DedupError where the system refuses a thread or a process that the block starts."""
    try:
        yield
    except (RuntimeError, BlockingIOError) as error:
        if isinstance(error, RuntimeError) and str(error) != _REFUSED:
            raise
        raise DedupError(
            "the system does not let this process start another thread or process: raise the limit of its "
            "account, service or container (ulimit -u, TasksMax, pids.max) or of its memory (ulimit -v)"
        ) from error


def split_evenly(first: int, end: int, parts: int) -> list[int]:
    """Return the bounds of so many ranges from first to end - 1, of about one size."""
    return [first + (end - first) * number // parts for number in range(parts + 1)]


def in_threads(
    threads: int, function: Callable[..., _Result], *arguments: Iterable[object]
) -> Generator[_Result, None, None]:
    """Yield what `map` does; the function is called in so many threads, or in this one.

    Fewer than twice as many results as there are threads wait to be taken, or for the one before them. Only
    kernels and functions of numpy let another thread work at the same time. At the end of the iteration,
    however it ends, no thread is left.
    """
    if threads == 1:
        yield from map(function, *arguments)
        return
    pool = ThreadPoolExecutor(threads, "db-dedup")
    submitted: deque[Future[_Result]] = deque()
    try:
        for some in zip(*arguments, strict=False):
            with starting_threads():
                submitted.append(pool.submit(function, *some))
            if len(submitted) == 2 * threads:
                yield submitted.popleft().result()
        while submitted:
            yield submitted.popleft().result()
    finally:  # after an error or Ctrl-C the calls that have not begun are dropped
        pool.shutdown(cancel_futures=True)
