"""A migration of the host's that gives the key another type, while a worker and checks go on."""

from __future__ import annotations

from threading import Event

import pytest
from sqlalchemy import Column, MetaData, String, Table, Text, insert, text

from db_dedup import Deduplicator, view_aside
from db_dedup.jobs.worker import trigger_guard
from db_dedup.jobs.worker.change_worker import ChangeWorker
from tests.servers import Database

NOTES = Table("notes", MetaData(), Column("id", String(5), primary_key=True), Column("body", Text))
BODY = "夜间施工噪音扰民，居民多次反映，工地凌晨还在打桩，老人和孩子无法休息，请尽快到现场处理并答复。"
ALTER = {
    "postgresql": "ALTER TABLE notes ALTER COLUMN id TYPE varchar(20)",
    "mariadb": "ALTER TABLE notes MODIFY id VARCHAR(20) NOT NULL",
}


@pytest.fixture(params=ALTER)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


def test_longer_keys(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trigger_guard, "_SECONDS_BETWEEN_LOOKS", 0.0)
    NOTES.create(database.engine)
    write(database, "1", BODY)
    dedup = Deduplicator(database.engine, "notes", {"body": 1})
    dedup.upgrade()
    dedup.attach()
    worker = ChangeWorker([dedup.worker()])
    worker.run(Event(), drain=True)
    write(database, "2", BODY + "谢谢。")
    worker.run(Event(), drain=True)
    assert [match.row_key for match in dedup.check({"body": BODY})] == ["1", "2"]
    with database.engine.begin() as connection, view_aside(connection, "notes"):
        connection.execute(text(ALTER[database.name]))
    write(database, "longer than before", BODY + "敬礼。")
    worker.run(Event(), drain=True)
    write(database, "even longer", BODY + "此致。")
    worker.run(Event(), drain=True)
    found = {match.row_key for match in dedup.check({"body": BODY})}
    assert found == {"1", "2", "longer than before", "even longer"}
    assert dedup.verify().is_right


def write(database: Database, key: str, body: str) -> None:
    with database.engine.begin() as connection:
        connection.execute(insert(NOTES), {"id": key, "body": body})
