"""Scans from time to time: when, what they tell, and how they end."""

from __future__ import annotations

import logging
import queue
import re
import signal
import threading
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

import pytest
from apscheduler.triggers.interval import IntervalTrigger

from db_dedup import Deduplicator
from db_dedup.cli.shared.options import DEFAULT_CONFIG, table_opener
from db_dedup.cli.shared.working import late_tables, scans_of
from db_dedup.errors import ConfigError, DatabaseUnavailableError, DedupError
from db_dedup.jobs.stopping import StoppableProgress, StoppedError
from db_dedup.jobs.worker import scheduled_scans
from db_dedup.jobs.worker.batch_size import BATCH_CHANGES
from db_dedup.jobs.worker.scheduled_scans import (
    ScheduledScans,
    cron_trigger,
    interval_trigger,
)
from db_dedup.jobs.worker.worker_table import CACHE_MB
from db_dedup.progress import NullProgress
from db_dedup.records import ScanReport
from db_dedup.store.watched_tables import find_table
from tests.cli.conftest import fail, succeed
from tests.health.conftest import do
from tests.health.process import SECONDS, background
from tests.scan.conftest import answer
from tests.servers import Database

OFTEN = IntervalTrigger(seconds=0.05)

# Of 2026-11-16, a Monday, to the 22nd: on which days the expression fires.
CRON = [
    ("0 2 * * *", "16 17 18 19 20 21 22"),
    ("0 2 * * 0", "22"),
    ("0 2 * * 7", "22"),
    ("0 2 * * 1-5", "16 17 18 19 20"),
    ("0 2 * * 0-3", "16 17 18 22"),
    ("0 2 * * 6,1", "16 21"),
    ("0 2 * * */2", "17 19 21 22"),
    ("0 2 * * 1-7/3", "16 19 22"),
    ("0 2 * * sun", "22"),
    ("0 2 * * mon-wed", "16 17 18"),
    ("0 2 20 * *", "20"),
]


@pytest.mark.parametrize(("expression", "days"), CRON)
def test_weekdays_are_those_of_a_crontab(expression: str, days: str) -> None:
    trigger = cron_trigger(expression)
    now = datetime(2026, 11, 16, tzinfo=trigger.timezone)
    fired = []
    while (now := trigger.get_next_fire_time(None, now)) < datetime(2026, 11, 23, tzinfo=trigger.timezone):
        fired.append(now)
        now += timedelta(minutes=1)
    assert " ".join(str(time.day) for time in fired) == days
    assert {(time.hour, time.minute) for time in fired} == {(2, 0)}


@pytest.mark.parametrize(
    "expression", ["", "0 2 * *", "0 2 * * * *", "61 * * * *", "0 2 * * 8", "0 2 * * 5-2", "a b c d e"]
)
def test_a_cron_expression_that_cannot_be_read(expression: str) -> None:
    with pytest.raises(ConfigError, match=r"such as '0 2 \* \* \*'"):
        cron_trigger(expression)


@pytest.mark.parametrize("expression", ["0 2 31 2 *", "0 2 31 4,6 *"])
def test_a_day_that_never_comes_is_refused(expression: str) -> None:
    with pytest.raises(ConfigError, match="there is no such day"):
        cron_trigger(expression)
    assert cron_trigger("0 2 29 2 *")


def test_intervals() -> None:
    assert interval_trigger("30m").interval == timedelta(minutes=30)
    assert interval_trigger("6h").interval == timedelta(hours=6)
    assert interval_trigger("2d").interval == timedelta(days=2)
    for wrong in ("", "0h", "6", "h", "1.5h", "-1h", "6 h", "10s", "99999999999d"):
        with pytest.raises(ConfigError, match="such as 30m, 6h or 1d"):
            interval_trigger(wrong)


def told(dedup: Deduplicator, wanted: int = 1) -> list[ScanReport]:
    """Run scans of the table one after another, until so many are done."""
    stop, reports = threading.Event(), list[ScanReport]()

    def on_scan(report: ScanReport) -> None:
        reports.append(report)
        if len(reports) == wanted:
            stop.set()

    def on_error(_: str, error: DedupError) -> None:
        stop.set()
        raise error

    ScheduledScans({dedup.name: dedup.scan}, OFTEN, on_scan, on_error).run(stop)
    return reports


def test_it_tells_what_it_repaired(dedup: Deduplicator, database: Database) -> None:
    dedup.detach()
    stored = answer(dedup)
    first, second = (group.group_id for group in dedup.groups(limit=2))
    do(database, f"DELETE FROM petitions WHERE id = {first}")
    do(
        database,
        "UPDATE petitions SET title = '甲乙丙丁', content = '完全不同的一件事情，没有别人说过。' "
        f"WHERE id = {second}",
    )
    missed = dedup.verify().answer
    repaired, again = told(dedup, 2)[:2]
    fresh = answer(dedup)
    changed = missed.pairs_changed.count
    assert repaired.pairs_gained == missed.pairs_gained.count + changed
    assert repaired.pairs_lost == missed.pairs_lost.count + changed
    assert repaired.pairs_lost > 0
    assert repaired.groups_changed == missed.groups_changed.count
    assert repaired.groups_changed >= len({first, second} - {group.group_id for group in fresh[1]})
    assert (again.pairs_gained, again.pairs_lost, again.groups_changed) == (0, 0, 0)
    assert stored != fresh
    assert dedup.verify().is_right


def test_a_preview_changes_nothing(dedup: Deduplicator) -> None:
    report = dedup.preview().report
    assert (report.pairs_gained, report.pairs_lost, report.groups_changed) == (None, None, None)


def test_after_a_failed_scan_the_next_one_comes(dedup: Deduplicator, database: Database) -> None:
    dedup.detach()
    do(database, "ALTER TABLE petitions RENAME TO elsewhere")
    stop, errors, reports = threading.Event(), list[str](), list[ScanReport]()

    def mend(name: str, error: DedupError) -> None:
        errors.append(f"{name}: {error}")
        do(database, "ALTER TABLE elsewhere RENAME TO petitions")

    def on_scan(report: ScanReport) -> None:
        reports.append(report)
        stop.set()

    ScheduledScans({"petitions": dedup.scan}, OFTEN, on_scan, mend).run(stop)
    assert len(errors) == 1
    assert "petitions" in errors[0]
    assert reports[0].rows == 150


class _Skips(logging.Handler):
    """Notices when a run is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if "scan of petitions" in message and "maximum number of running instances" in message:
            self.seen.set()


def test_a_run_does_not_begin_before_the_last_one_has_ended(dedup: Deduplicator) -> None:
    """The first scan waits until another run should have begun and was left out."""
    stop, at_once, skips = threading.Event(), list[int](), _Skips()
    running = 0

    def scan() -> ScanReport:
        nonlocal running
        running += 1
        at_once.append(running)
        assert skips.seen.wait(60)
        report = dedup.scan()
        running -= 1
        stop.set()
        return report

    logger = logging.getLogger("apscheduler.scheduler")
    logger.addHandler(skips)
    try:
        ScheduledScans({"petitions": scan}, OFTEN, lambda _: None, lambda *_: None).run(stop)
    finally:
        logger.removeHandler(skips)
    assert skips.seen.is_set()
    assert set(at_once) == {1}


def test_a_scan_that_fails_while_the_schedule_stops_does_not_keep_it() -> None:
    """The server is away, so the scan would be tried again; the process is told to stop meanwhile."""
    stop, stopped, faults = threading.Event(), threading.Event(), list[DedupError]()

    def scan() -> ScanReport:
        stop.set()
        while scans._scheduler.running:
            time.sleep(0.01)
        raise DatabaseUnavailableError("cannot connect")

    def run() -> None:
        scans.run(stop)
        stopped.set()

    scans = ScheduledScans({"petitions": scan}, OFTEN, print, lambda _, fault: faults.append(fault))
    threading.Thread(target=run, daemon=True).start()
    assert stopped.wait(SECONDS)
    assert list(map(str, faults)) == ["cannot connect"]


class _Clock(datetime):
    """Goes ahead of the time as far as it is told."""

    ahead = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + cls.ahead


def test_a_scan_that_was_due_while_the_machine_was_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled_scans, "_CLOCK_SECONDS", 0.02)
    monkeypatch.setattr("apscheduler.schedulers.base.datetime", _Clock)
    stop, scans = threading.Event(), queue.SimpleQueue[str]()

    def scan() -> ScanReport:
        scans.put("petitions")
        raise DedupError("only when it runs matters here")

    nightly = ScheduledScans({"petitions": scan}, IntervalTrigger(hours=8), print, lambda *_: None)
    running = threading.Thread(target=nightly.run, args=(stop, ["petitions"]))
    running.start()
    try:
        scans.get(timeout=SECONDS)
        assert scans.empty()
        monkeypatch.setattr(_Clock, "ahead", timedelta(hours=9))
        scans.get(timeout=SECONDS)
    finally:
        stop.set()
        running.join()


def test_the_next_scan_is_told_when_none_is_due_any_more() -> None:
    """Each of two tables is scanned at once; the second one fails, and finishes when it is tried again."""
    stop, events = threading.Event(), list[str]()
    faults = [DatabaseUnavailableError("cannot connect")]

    def scan_second() -> ScanReport:
        if faults:
            raise faults.pop()
        raise DedupError("only that it is over matters here")

    def scan_first() -> ScanReport:
        raise DedupError("this one is over, too")

    def on_wait(until: datetime) -> None:
        ahead = until - datetime.now(UTC)
        events.append("next scan" if timedelta(hours=7) < ahead < timedelta(hours=9) else str(until))
        stop.set()

    scans = {"first": scan_first, "second": scan_second}
    schedule = ScheduledScans(
        scans, interval_trigger("8h"), print, lambda name, _: events.append(name), on_wait
    )
    at_the_latest = threading.Timer(SECONDS, stop.set)
    at_the_latest.start()
    schedule.run(stop, at_once=["first", "second"])
    at_the_latest.cancel()
    assert events == ["first", "second", "second", "next scan"]


@pytest.mark.usefixtures("dedup")
def test_the_command_says_at_its_start_when_it_will_scan() -> None:
    with background("schedule", "petitions", "--cron", "30 2 29 2 *") as scheduled:
        assert re.match(r"next scan: \d{4}-02-29 02:30[+-]\d\d:\d\d$", scheduled.line())
        assert scheduled.end(signal.SIGTERM) == 0


class _StopsAt:
    """Tells the scan to stop as soon as a step begins."""

    def __init__(self, step: str, stop: threading.Event) -> None:
        self._step, self._stop = step, stop

    def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
        if step == self._step:
            self._stop.set()

    def advance(self, amount: int) -> None:
        pass

    def finish(self) -> None:
        pass


@pytest.mark.parametrize("step", ["fingerprints", "matching", "writing the answer"])
def test_a_scan_that_is_stopped_leaves_the_answer(dedup: Deduplicator, database: Database, step: str) -> None:
    before = answer(dedup)
    do(database, "DELETE FROM petitions WHERE id > 75")
    stop = threading.Event()
    progress = StoppableProgress(_StopsAt(step, stop), stop)
    with pytest.raises(StoppedError):
        Deduplicator(dedup.database, "petitions", progress=progress).scan()
    assert answer(dedup) == before
    (status,) = dedup.database.status()
    assert (status.last_scan_state, status.last_scan_error) == ("failed", str(StoppedError()))
    assert dedup.scan().rows == 75


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command(dedup: Deduplicator, database: Database, number: signal.Signals) -> None:
    dedup.detach()
    gone = dedup.groups(limit=1)[0].group_id
    do(database, f"DELETE FROM petitions WHERE id = {gone}")
    with background("schedule", "petitions", "--every", "1d", "--once-now") as scheduled:
        said = scheduled.line()
        assert said.startswith("petitions: 149 rows in ")
        assert "pairs gained" in said
        assert scheduled.line().startswith("next scan: 2")
        assert scheduled.end(number) == 0
        assert scheduled.rest() == ""
    assert dedup.verify().is_right


def test_when_is_to_be_said_once(dedup: Deduplicator) -> None:
    assert dedup.name == "petitions"
    for options in ([], ["--cron", "0 2 * * *", "--every", "6h"]):
        assert "either --cron" in str(fail("schedule", "petitions", *options))
    assert "such as 30m" in str(fail("schedule", "petitions", "--every", "soon"))


def test_a_schedule_does_not_undo_a_scan_by_new_settings(dedup: Deduplicator) -> None:
    scan = scans_of(table_opener(DEFAULT_CONFIG, None), ["petitions"])["petitions"]
    scan()
    file = DEFAULT_CONFIG.read_text(encoding="utf-8")
    DEFAULT_CONFIG.write_text(file.replace("order", "threshold = 0.9\norder"), encoding="utf-8")
    succeed("scan", "petitions")
    scan()
    with dedup.database.engine.connect() as connection:
        stored = find_table(connection, dedup.database.tables, "petitions")
    assert stored is not None
    assert stored.watched.threshold == 0.9


@pytest.mark.usefixtures("dedup")
def test_a_worker_that_begins_again_takes_the_settings_of_the_file() -> None:
    (late,) = late_tables(table_opener(DEFAULT_CONFIG, None), ["petitions"], BATCH_CHANGES, CACHE_MB)
    late.step()
    file = DEFAULT_CONFIG.read_text(encoding="utf-8")
    DEFAULT_CONFIG.write_text(file.replace("order", "threshold = 0.9\norder"), encoding="utf-8")
    succeed("scan", "petitions")
    late.forget()  # as after a fault
    late.step()  # former settings would be refused
    late.forget()


def test_null_progress_is_enough(dedup: Deduplicator) -> None:
    progress = StoppableProgress(NullProgress(), threading.Event())
    assert Deduplicator(dedup.database, "petitions", progress=progress).scan().rows == 150
