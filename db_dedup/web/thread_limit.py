"""Run the calls of the database in threads, with a limit on their number and on their time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from db_dedup.errors import DedupError
from db_dedup.flow.threads import starting_threads
from db_dedup.web.problems import RefusedError

_T = TypeVar("_T")


class LimitedThreads:
    """Threads for calls that wait for the database.

    A call cannot be stopped: after the time limit the client gets an answer, and the thread is used again
    when the database has answered. So the calls that wait for a thread are counted, and too many are refused.
    """

    def __init__(self, threads: int, max_waiting: int, seconds: float) -> None:
        """Set the limits.

        Args:
            threads: how many calls run at a time.
            max_waiting: how many others may wait.
            seconds: the time limit of one.

        Raises:
            DedupError: the system refuses so many threads.
        """
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="db-dedup-serve")
        self._most, self._seconds = threads + max_waiting, seconds
        self._count = 0
        self._start(threads)

    def _start(self, threads: int) -> None:
        """Start all threads now: a call whose thread was refused later would stay counted as waiting."""
        together = Barrier(threads)
        try:
            with starting_threads():
                for _ in range(threads):
                    self._pool.submit(together.wait)
        except DedupError:
            together.abort()
            self._pool.shutdown(cancel_futures=True)
            raise

    async def run(self, call: Callable[[], _T]) -> _T:
        """Return what the call returns.

        Raises:
            RefusedError: there are too many calls, or this one takes too long.
        """
        if self._count >= self._most:
            raise RefusedError("busy", "Too many requests are waiting. Try again in some seconds.")
        self._count += 1
        running = self._pool.submit(_without_stop_iteration, call)
        loop = asyncio.get_running_loop()
        running.add_done_callback(lambda _: _call_on(loop, self._done))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(running), self._seconds)
        except TimeoutError:
            raise RefusedError(
                "timed-out", "It took longer than answer_seconds in [server]: long texts or a busy database."
            ) from None

    def close(self) -> None:
        """Wait for the calls that run; those that wait for a thread are dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _done(self) -> None:
        self._count -= 1


def _without_stop_iteration(call: Callable[[], _T]) -> _T:
    """Return what the call returns. A StopIteration would never reach the coroutine that waits for it."""
    try:
        return call()
    except StopIteration:
        raise RuntimeError("an iterator has ended too early") from None


def _call_on(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)
