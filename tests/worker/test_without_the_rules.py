"""Each rule of the queue with and without it: without it a change is lost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from db_dedup.dialects.base import Dialect
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.schema.tables import Tables
from db_dedup.store import changes
from db_dedup.store.changes import Change
from tests.servers import Database
from tests.worker.conftest import body, is_right, write
from tests.worker.test_faults import SERVERS
from tests.worker.watched import Watched, wait_for_nobody


class TakerThatRemembers:
    """Takes what was queued after the last change it has seen."""

    def __init__(self) -> None:
        self._last = datetime.min

    def take(
        self, connection: Connection, _dialect: Dialect, tables: Tables, table_id: int, *_: Any
    ) -> list[Change]:
        c = tables.change.c
        newer = select(c.row_key, c.operation, c.queued_at).where(
            c.table_id == table_id, c.queued_at > self._last
        )
        rows = connection.execute(newer).all()
        self._last = max([self._last, *(row.queued_at for row in rows)])
        return [Change(row.row_key, row.operation) for row in rows]


@SERVERS
@pytest.mark.parametrize("remembers", [False, True])
def test_a_taker_that_remembers_loses_a_change_that_commits_late(
    database: Database, watched: Watched, monkeypatch: pytest.MonkeyPatch, remembers: bool
) -> None:
    wait_for_nobody(database.engine, database.name)
    database.engine.dispose()
    write(watched, (0, 1))
    worker = watched.dedup.worker()
    if remembers:
        monkeypatch.setattr(changes, "take_changes", TakerThatRemembers().take)
    table = watched.letters
    with database.engine.connect() as late:
        late.execute(update(table).where(table.c.id == 0).values(body=body(1)))
        write(watched, (3, 4))
        _work_off(worker)
        late.commit()
    _work_off(worker)
    assert is_right(watched) is not remembers


def _work_off(worker: TableWorker) -> None:
    while worker.step():
        pass
