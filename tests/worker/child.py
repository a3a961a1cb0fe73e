"""A worker in a process of its own, which stops at a point of the test's choice.

The processes come from a server that has imported everything once: each starts at once, and none of them is
a copy of the test's own process.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy import select

from db_dedup.cli import (
    application,  # noqa: F401 - loaded before the test goes on, so that a signal finds the worker running
    main,
    worker,  # noqa: F401
)
from db_dedup.engines.embedded.increment import groups, rows
from db_dedup.jobs.worker.batch_size import BatchSize
from db_dedup.store import changes, neighbours, watched_tables

SECONDS: Final = 120
"""Patience with a busy machine; nothing waits for it to pass."""

FORKSERVER: Final = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload([__name__, "tests.worker.warm"])

POINTS: Final[Mapping[str, tuple[Any, str, bool]]] = {
    "before the changes are taken": (changes, "take_changes", False),
    "after the changes are taken": (changes, "take_changes", True),
    "after the rows are written": (rows, "write_rows", True),
    "after the copies are linked": (neighbours, "write_links", True),
    "after the pairs are written": (groups, "replace_pairs", True),
    "after the groups are written": (neighbours, "write_groups", True),
    "before the commit": (watched_tables, "bump_answer_version", True),
    "after the commit": (BatchSize, "learn", False),
}
"""Where to stop -> the owner of a function, its name, and whether the function is done by then."""


class Worker:
    """`db-dedup worker` with these arguments, running while the block does, and killed at its end."""

    def __init__(
        self, url: str, *arguments: str, stop_at: str | None = None, without_lock: bool = False
    ) -> None:
        self._reached, self._go_on = FORKSERVER.Event(), FORKSERVER.Event()
        self.process: ForkServerProcess = FORKSERVER.Process(
            target=_work, args=(url, arguments, stop_at, without_lock, self._reached, self._go_on)
        )

    def __enter__(self) -> Self:
        self.process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.join()

    def reaches(self, seconds: float = SECONDS) -> bool:
        """Whether it comes to its point."""
        return self._reached.wait(seconds)

    def go_on(self) -> None:
        """Let it go on from its point, at which it stops no more."""
        self._go_on.set()

    def end(self) -> int | None:
        """Wait for it; its exit code."""
        self.process.join(SECONDS)
        return self.process.exitcode


def _work(
    url: str,
    arguments: tuple[str, ...],
    stop_at: str | None,
    without_lock: bool,
    reached: Event,
    go_on: Event,
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if without_lock:
        remove_lock()
    if stop_at is not None:
        _stop_at(*POINTS[stop_at], reached, go_on)
    sys.argv = ["db-dedup", "worker", "--url", url, "--poll", "0.02", *arguments]
    main()


def _stop_at(owner: Any, name: str, is_done: bool, reached: Event, go_on: Event) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def stopping(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named) if is_done else None
        reached.set()
        go_on.wait()
        return result if is_done else original(*arguments, **named)

    setattr(owner, name, stopping)


def remove_lock() -> None:
    """The table's row is read, and others are not kept out."""

    def look(connection: Any, tables: Any, name: str) -> Any:
        found = watched_tables.find_table(connection, tables, name)
        lease = select(tables.watched_table.c.lease_owner).where(tables.watched_table.c.name == name)
        return found, connection.scalar(lease)

    watched_tables.lock_table = look
