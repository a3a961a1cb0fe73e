"""While a scan or a batch runs, Python searches for cyclic garbage less often, and afterwards as before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator
from db_dedup.jobs.garbage import collecting_seldom
from db_dedup.jobs.worker.change_batches import ChangeBatches
from db_dedup.jobs.worker.worker_table import Batch
from db_dedup.progress import NullProgress
from db_dedup.sample import Sample
from tests.scan.conftest import fill_database, watch
from tests.servers import Database


class Stopping(NullProgress):
    """Notes the setting when the matching begins, and stops the scan."""

    found: int

    def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
        if step == "matching":
            self.found = gc.get_threshold()[0]
            raise KeyboardInterrupt


@pytest.fixture(params=[700, 0, 1_000_000])
def setting(request: pytest.FixtureRequest) -> Iterator[int]:
    before = gc.get_threshold()
    gc.set_threshold(request.param, *before[1:])
    yield request.param
    gc.set_threshold(*before)


def test_also_after_a_scan_that_was_stopped(sqlite_database: Database, sample: Sample, setting: int) -> None:
    fill_database(sqlite_database.engine, sample)
    progress = Stopping()
    dedup: Deduplicator = watch(sqlite_database.engine, progress=progress)
    before = gc.get_threshold()
    with pytest.raises(KeyboardInterrupt):
        dedup.scan()
    assert progress.found == {700: 20_000}.get(setting, setting)
    assert gc.get_threshold() == before


def test_a_worker_collects_seldom_while_it_handles_a_batch(
    sqlite_database: Database, sample: Sample, setting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_database(sqlite_database.engine, sample)
    dedup: Deduplicator = watch(sqlite_database.engine)
    dedup.attach()
    dedup.scan()
    with sqlite_database.engine.begin() as connection:
        connection.execute(text("UPDATE petitions SET content = title WHERE id = 1"))
    found, original = list[int](), ChangeBatches.handle

    def handle(self: ChangeBatches, row_key: str | None = None, at_most: int | None = None) -> Batch | None:
        found.append(gc.get_threshold()[0])
        return original(self, row_key, at_most)

    monkeypatch.setattr(ChangeBatches, "handle", handle)
    before = gc.get_threshold()
    dedup.worker().step()
    assert found == [{700: 20_000}.get(setting, setting)]
    assert gc.get_threshold() == before


def test_of_two_scans_at_once_the_last_one_puts_the_setting_back(setting: int) -> None:
    before = gc.get_threshold()
    first, second = collecting_seldom(), collecting_seldom()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == {700: 20_000}.get(setting, setting)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before
