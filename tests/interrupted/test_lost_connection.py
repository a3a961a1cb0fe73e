"""A server that ends every session: one line, whatever was being done."""

from __future__ import annotations

from typing import Any

import pytest

from db_dedup import DatabaseUnavailableError, Deduplicator
from db_dedup.jobs.objects import lock_waits, trigger_removal
from db_dedup.schema import migrate
from tests.bad_input.test_during_the_scan import kill_all
from tests.interrupted.conftest import by_settings, change_recipe, fresh_answer, stopped_at
from tests.scan.conftest import answer
from tests.servers import Database

LINES = ("error: the connection was lost\n", "error: the server ended the connection\n")


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("point", ["reading", "writing a page", "writing the entries", "switching"])
def test_a_lost_connection_is_one_line(petitions: Database, point: str) -> None:
    before = by_settings(petitions)
    before.upgrade()
    before.scan()
    shown = answer(before)
    dedup = change_recipe(petitions)
    with stopped_at(point, with_a_process=True) as scan:
        kill_all(petitions)()
        code, said = scan.end()
    assert code == 1
    assert said in LINES
    assert answer(before) == shown
    dedup.scan()  # at once: the scan that failed has let the table go
    assert answer(dedup) == fresh_answer(dedup)


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_tables_whose_connection_is_lost_are_not_called_busy(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = migrate.upgrade

    def lost(*arguments: Any) -> None:
        kill_all(database)()
        upgrade(*arguments)

    dedup = Deduplicator(database.engine, "petitions", {"content": 1})
    monkeypatch.setattr(migrate, "upgrade", lost)
    with pytest.raises(DatabaseUnavailableError) as caught:
        dedup.upgrade()
    assert f"error: {caught.value}\n" in LINES
    monkeypatch.undo()
    dedup.upgrade()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_connection_lost_by_detach_is_no_missing_right(
    petitions: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*arguments: Any) -> None:
        kill_all(petitions)()
        lock_waits.run_ddl(*arguments)

    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.attach()
    monkeypatch.setattr(trigger_removal, "run_ddl", lost)
    with pytest.raises(DatabaseUnavailableError) as caught:
        dedup.detach()
    assert f"error: {caught.value}\n" in LINES
    monkeypatch.undo()
    dedup.detach()
