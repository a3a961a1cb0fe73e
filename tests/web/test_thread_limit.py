"""The threads of the service exist from its start: no call is lost because one is refused later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from db_dedup.errors import DedupError
from db_dedup.web.thread_limit import LimitedThreads


@contextmanager
def refused_threads() -> Iterator[None]:
    """The system refuses every thread: none can have a stack of this size."""
    before = threading.stack_size(1 << 47)
    try:
        yield
    finally:
        threading.stack_size(before)


def test_a_service_that_has_started_needs_no_other_thread() -> None:
    threads = LimitedThreads(2, max_waiting=1, seconds=60)
    try:
        with refused_threads():
            assert [asyncio.run(threads.run(lambda: 7)) for _ in range(4)] == [7] * 4
    finally:
        threads.close()


def test_refused_threads_are_an_error_of_the_start() -> None:
    running = threading.active_count()
    with refused_threads(), pytest.raises(DedupError, match="another thread"):
        LimitedThreads(2, max_waiting=1, seconds=60)
    assert threading.active_count() == running


def test_of_several_threads_none_waits_if_one_is_refused() -> None:
    running, started = threading.active_count(), threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if threading.active_count() == running + 2:
            threading.stack_size(1 << 47)
        started(thread)

    with pytest.MonkeyPatch.context() as patch, refused_threads():
        threading.stack_size(0)
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(DedupError, match="another thread"):
            LimitedThreads(3, max_waiting=1, seconds=60)
    assert threading.active_count() == running
