"""Calls in threads give what `map` gives, and leave no thread behind."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from db_dedup.flow.threads import in_threads


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
