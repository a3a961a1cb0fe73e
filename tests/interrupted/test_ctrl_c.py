"""Ctrl-C: exit code 130, one line that says what stands, the table free at once, no process left."""

from __future__ import annotations

import signal

import pytest

from tests.interrupted.conftest import at_points, by_settings, change_recipe, dump, fresh_answer, stopped_at
from tests.scan.conftest import answer
from tests.servers import Database

SAID = "stopped: the last complete answer stands; scan again for a new one"


@at_points(
    "reading", "writing a page", "between pages", "matching", "switching", on_servers=("reading", "switching")
)
def test_a_stopped_scan_says_what_stands_and_frees_the_table(petitions: Database, point: str) -> None:
    before = by_settings(petitions)
    before.upgrade()
    before.scan()
    shown, stored = answer(before), dump(before, "scan")
    dedup = change_recipe(petitions)
    with stopped_at(point) as scan:
        scan.send(signal.SIGINT)
        code, said = scan.end()
    assert code == 130
    assert said.splitlines()[0] == SAID
    assert "Traceback" not in said
    assert answer(before) == shown
    assert [row for row in dump(before)["fingerprint"] if row[2] == 1] == stored["fingerprint"]
    (status,) = dedup.database.status()
    assert (status.last_scan_state, status.last_scan_error) == ("failed", "KeyboardInterrupt")
    dedup.scan()  # at once: nobody holds the table
    assert answer(dedup) == fresh_answer(dedup)


def test_stopped_after_the_switch_the_scan_counts_as_finished(sqlite_petitions: Database) -> None:
    dedup = by_settings(sqlite_petitions)
    dedup.upgrade()
    with stopped_at("switched") as scan:
        scan.send(signal.SIGINT)
        assert scan.end()[0] == 130
    (status,) = dedup.database.status()
    assert (status.last_scan_state, status.last_scan_error) == ("finished", None)
    assert dedup.groups()


@pytest.mark.parametrize("point", ["reading", "matching"])
def test_no_process_is_left(sqlite_petitions: Database, point: str) -> None:
    by_settings(sqlite_petitions).upgrade()
    with stopped_at(point, with_a_process=True) as scan:
        scan.send(signal.SIGINT)
        # Its standard error ends when the last process that holds it does.
        code, said = scan.end()
    assert (code, said.splitlines()[0]) == (130, SAID)
    assert "Traceback" not in said
