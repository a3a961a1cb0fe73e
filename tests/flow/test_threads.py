"""Calls in threads give what `map` gives, and leave no thread behind."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from db_dedup.errors import DedupError
from db_dedup.flow.threads import in_threads, starting_threads

MORE_THAN_THERE_IS = 1 << 47


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_in_threads_give_what_map_gives(threads: int) -> None:
    running = threading.active_count()
    assert list(in_threads(threads, divmod, [7, 8, 9], [2, 3, 4])) == [(3, 1), (2, 2), (2, 1)]
    assert list(in_threads(threads, abs, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(in_threads(threads, divmod, [1, 1], [1, 0]))
    begun = in_threads(threads, abs, range(-9, 0))
    assert next(begun) == 9
    begun.close()
    assert threading.active_count() == running


@pytest.fixture
def refused_threads() -> Iterator[None]:
    """The system refuses every thread: none can have a stack of this size."""
    before = threading.stack_size(MORE_THAN_THERE_IS)
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("refused_threads")
def test_a_thread_that_the_system_refuses_is_said_with_its_limits() -> None:
    with pytest.raises(DedupError, match=r"another thread or process: .*ulimit -u"):
        list(in_threads(2, abs, [1]))


def test_other_errors_of_a_start_are_left_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="once") as caught, starting_threads():
        raise RuntimeError("threads can only be started once")
    assert not isinstance(caught.value, DedupError)


def test_calls_that_have_not_begun_are_dropped_at_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    begun: list[int] = []

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            may_end.set()
            super().shutdown(wait)

    def call(number: int) -> None:
        begun.append(number)
        may_end.wait()

    def numbers() -> Iterator[int]:
        yield from range(3)
        raise KeyboardInterrupt

    monkeypatch.setattr("db_dedup.flow.threads.ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):
        list(in_threads(2, call, numbers()))
    assert sorted(begun) == [0, 1]
