"""Somebody reads our view while it must be made again: they are not disturbed, and nothing is lost."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator, view_aside
from db_dedup.errors import DatabaseUnavailableError
from db_dedup.sample import Sample
from tests.scan.conftest import fill_database, watch
from tests.servers import Database

pytestmark = pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)


@pytest.fixture
def scanned(database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> Deduplicator:
    """Scanned; the table has a column more since then, so that the next scan makes the view again."""
    for module in ("postgresql", "mysql"):
        monkeypatch.setattr(f"db_dedup.dialects.{module}.triggers.TABLE_LOCK_SECONDS", 1)
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    with database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE petitions ADD COLUMN closed_at TIMESTAMP NULL"))
    return dedup


def columns(dedup: Deduplicator, database: Database) -> list[str]:
    with database.engine.connect() as connection:
        return list(connection.execute(text(f"SELECT * FROM {view(dedup)}")).keys())


def view(dedup: Deduplicator) -> str:
    namespace = dedup.database.namespace
    return f"{namespace.schema}." * bool(namespace.schema) + f"{namespace.prefix}duplicates_of_petitions"


def test_a_scan_beside_a_long_reader_has_finished(database: Database, scanned: Deduplicator) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE petitions SET content = 'changed' WHERE id IN (1, 2)"))
    with database.engine.connect() as reader:
        before = reader.execute(text(f"SELECT * FROM {view(scanned)}")).all()
        with pytest.raises(
            DatabaseUnavailableError,
            match=r"has finished and its answer is shown.*view.* is busy .*`db-dedup scan petitions` again",
        ) as caught:
            scanned.scan()
        assert caught.value.is_transient
        assert len(reader.execute(text(f"SELECT * FROM {view(scanned)}")).all()) > 0 < len(before)
    (entry,) = scanned.database.status()
    assert entry.last_scan_state == "finished"
    assert "closed_at" not in columns(scanned, database)
    scanned.scan()
    assert "closed_at" in columns(scanned, database)
    assert scanned.verify().is_right


def test_neither_view_aside_nor_uninstall_waits_for_long(database: Database, scanned: Deduplicator) -> None:
    with database.engine.connect() as reader:
        reader.execute(text(f"SELECT * FROM {view(scanned)}")).all()
        with pytest.raises(DatabaseUnavailableError, match="busy"), view_aside(database.engine, "petitions"):
            pass
        with pytest.raises(DatabaseUnavailableError, match="busy"):
            scanned.database.uninstall()
    assert columns(scanned, database)
    scanned.database.uninstall()
