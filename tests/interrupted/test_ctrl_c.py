"""Ctrl-C and its like: one line that says what stands, the table free at once, no process left."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest
from sqlalchemy import event

from db_dedup import Deduplicator
from tests.interrupted.conftest import (
    at_points,
    by_settings,
    change_recipe,
    dump,
    fresh_answer,
    in_the_file,
    stopped_at,
)
from tests.scan.conftest import answer
from tests.servers import Database

SAID = "stopped: the last complete answer, if there is one, is kept; scan again for a new one\n"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@at_points(
    "reading",
    "writing a page",
    "between pages",
    "matching",
    "writing the entries",
    "switching",
    on_servers=("reading", "writing the entries", "switching"),
)
def test_a_stopped_scan_says_what_stands_and_frees_the_table(petitions: Database, point: str) -> None:
    before = by_settings(petitions)
    before.upgrade()
    before.scan()
    shown, stored = answer(before), dump(before, "scan")
    dedup = change_recipe(petitions)
    number = SIGNALS[len(point) % len(SIGNALS)]  # each of them at some points
    with stopped_at(point) as scan:
        scan.send(number)
        assert scan.end() == (128 + number, SAID)
    assert answer(before) == shown
    assert [row for row in dump(before)["fingerprint"] if row[2] == 1] == stored["fingerprint"]
    (status,) = dedup.database.status()
    assert (status.last_scan_state, status.last_scan_error) == ("failed", f"interrupted by {number.name}")
    assert status.last_scan_finished is None
    dedup.scan()  # at once: nobody holds the table
    assert answer(dedup) == fresh_answer(dedup)


def test_stopped_inside_a_statement_it_frees_the_table(sqlite_petitions: Database) -> None:
    """The error refers to the statement, and so to the connection with its transaction."""
    dedup = Deduplicator(sqlite_petitions.url, in_the_file())
    dedup.upgrade()

    def stop(cursor: Any, statement: str, parameters: Any, _context: object) -> None:
        if "dedup_pair" in statement:
            cursor.executemany(statement, parameters)
            raise KeyboardInterrupt

    event.listen(dedup.database.engine, "do_executemany", stop)
    with pytest.raises(KeyboardInterrupt):
        dedup.scan()
    event.remove(dedup.database.engine, "do_executemany", stop)
    (status,) = dedup.database.status()
    assert (status.last_scan_state, status.last_scan_error) == ("failed", "interrupted")
    dedup.scan()  # at once


def test_stopped_after_the_switch_the_scan_counts_as_finished(sqlite_petitions: Database) -> None:
    dedup = by_settings(sqlite_petitions)
    dedup.upgrade()
    with stopped_at("switched") as scan:
        scan.send(signal.SIGINT)
        assert scan.end() == (130, SAID)
    (status,) = dedup.database.status()
    assert (status.last_scan_state, status.last_scan_error) == ("finished", None)
    assert dedup.groups()


def test_stopped_while_it_removes_the_former_answer_the_new_one_is_there(sqlite_petitions: Database) -> None:
    dedup = by_settings(sqlite_petitions)
    dedup.upgrade()
    dedup.scan()
    dedup = change_recipe(sqlite_petitions)
    with stopped_at("removing the entries") as scan:
        scan.send(signal.SIGTERM)
        assert scan.end() == (143, SAID)
    assert dedup.database.status()[0].last_scan_state == "finished"
    assert answer(dedup) == fresh_answer(dedup)
    dedup.scan()  # at once
    assert dedup.verify().is_right


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("point", ["reading", "matching"])
def test_no_process_is_left(sqlite_petitions: Database, point: str, number: signal.Signals) -> None:
    by_settings(sqlite_petitions).upgrade()
    with stopped_at(point, with_a_process=True) as scan:
        scan.send(number)
        # Its standard error ends when the last process that holds it does.
        assert scan.end() == (128 + number, SAID)


def test_a_signal_to_every_process_of_the_service_is_for_the_scan(sqlite_petitions: Database) -> None:
    """The fingerprinting process does not end before the scan that waits for it."""
    by_settings(sqlite_petitions).upgrade()
    with stopped_at("reading", with_a_process=True) as scan:
        for process in [scan.process.pid, *children_of(scan.process.pid)]:
            os.kill(process, signal.SIGTERM)
        assert scan.end() == (143, SAID)


def test_a_fingerprinting_process_that_is_killed_is_one_line(sqlite_petitions: Database) -> None:
    by_settings(sqlite_petitions).upgrade()
    with stopped_at("reading", with_a_process=True) as scan:
        child, *_ = children_of(scan.process.pid)  # one for each core
        os.kill(child, signal.SIGKILL)
        assert scan.end() == (1, "error: the fingerprinting process ended with code -9\n")


def children_of(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, check=True)
    return [int(line) for line in listed.stdout.split() if int(line) != process]
