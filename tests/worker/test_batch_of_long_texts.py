"""A batch of the worker holds no more texts than fit into memory together."""

from __future__ import annotations

import pytest

from db_dedup.jobs.worker import batch_size
from tests.worker.conftest import is_right, write
from tests.worker.watched import Watched


def test_a_batch_ends_by_characters(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "_CHARACTERS_A_BATCH", 200)
    write(watched, range(60))
    worker = watched.dedup.worker()
    worker._size.changes = worker._size.limit
    taken = []
    while batch := worker.step():
        taken.append(batch.changes)
    assert taken[0] > 10  # nothing had been read
    write(watched, range(60, 90))
    batch = worker.step()
    assert batch is not None
    assert batch.changes < 10
    while worker.step():
        pass
    assert is_right(watched)
