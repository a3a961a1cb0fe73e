"""When a worker tries to fold the index of sketches."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from db_dedup.errors import DedupError
from db_dedup.jobs.worker import index_folding
from db_dedup.jobs.worker.index_folding import IndexFolding


@pytest.mark.parametrize("error", [DedupError("a piece is damaged"), MemoryError()])
def test_a_fold_that_failed_is_not_tried_after_every_batch(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    attempts = []

    def fail(*_: object) -> int:
        attempts.append(1)
        raise error

    monkeypatch.setattr(index_folding, "entries_before_folding", fail)
    folding = IndexFolding(MagicMock())
    for _ in range(20):
        folding.note_changes(20)
    assert len(attempts) == 1
    for _ in range(40):
        folding.note_changes(20)
    assert len(attempts) == 2
