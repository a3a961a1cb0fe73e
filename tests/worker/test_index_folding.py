"""When a worker tries to fold the index of sketches."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from db_dedup.errors import DedupError
from db_dedup.jobs.scan import best_effort_steps
from db_dedup.jobs.worker import index_folding
from db_dedup.jobs.worker.index_folding import IndexFolding

ERRORS = [DedupError("a piece is damaged"), MemoryError()]


@pytest.mark.parametrize("error", ERRORS)
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


@pytest.mark.parametrize("error", ERRORS)
def test_a_scan_whose_index_is_not_folded_has_finished(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    monkeypatch.setattr(best_effort_steps, "watched_tables", MagicMock())
    monkeypatch.setattr(best_effort_steps, "entries_before_folding", MagicMock(side_effect=error))
    best_effort_steps.fold_index(MagicMock(), MagicMock())
    assert "was not folded" in caplog.text
