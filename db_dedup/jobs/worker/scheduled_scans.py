"""Scheduled full scans: they repair what the triggers missed, and report what they repaired."""

import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from db_dedup.errors import ConfigError, DedupError
from db_dedup.flow.threads import starting_threads
from db_dedup.jobs.worker.ended_scans import EndedScans
from db_dedup.records import ScanReport
from db_dedup.translation import Phrase

logger = logging.getLogger(__name__)

Scan = Callable[[], ScanReport]

_UNITS: Final = {"m": 60, "h": 3600, "d": 86400}
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 30.0
_CLOCK_SECONDS: Final = 30.0
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def cron_trigger(expression: str, timezone: str | None = None) -> BaseTrigger:
    """Return a trigger for a cron expression: `0 2 * * *` is every night at two.

    Args:
        expression: minute, hour, day, month, weekday.
        timezone: by its name in the IANA list; None for the machine's.

    Raises:
        ConfigError: the expression is not valid, or there is no such time zone.
    """
    try:
        zone = None if timezone is None else ZoneInfo(timezone)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ConfigError("unknown time zone {zone!r}; such as Asia/Shanghai", zone=timezone) from None
    fields = expression.split()
    try:
        if len(fields) != 5:
            raise ValueError(Phrase("{fields} fields in place of five", fields=len(fields)))
        fields[4] = _named_weekdays(fields[4])
        trigger = CronTrigger.from_crontab(" ".join(fields), timezone=zone)
        if trigger.get_next_fire_time(None, datetime.now(trigger.timezone)) is None:
            raise ValueError(Phrase("there is no such day"))
        return trigger
    except ValueError as error:
        raise ConfigError(
            "cannot read the cron expression {cron!r} ({error}); "
            "such as '0 2 * * *': minute, hour, day, month, weekday",
            cron=expression,
            error=error,
        ) from None


def interval_trigger(duration: str) -> BaseTrigger:
    """Return a trigger for a whole number of minutes, hours or days: `30m`, `6h`, `1d`.

    Raises:
        ConfigError: the duration is not valid.
    """
    found = re.fullmatch(r"([1-9]\d{0,5})([mhd])", duration)
    if found is None:
        raise ConfigError("cannot read the interval {interval!r}; such as 30m, 6h or 1d", interval=duration)
    return IntervalTrigger(seconds=int(found[1]) * _UNITS[found[2]])


def was_missed(trigger: BaseTrigger, last: datetime, now: datetime) -> bool:
    """Return whether a scan was due between two points in time, each with its time zone."""
    due = trigger.get_next_fire_time(last, now)
    return due is not None and due <= now


@dataclass
class _Table:
    """A table, and the outcome of its last scan.

    Attributes:
        fault: the error of the last scan; None after one that finished.
        pause: seconds until the next attempt, where a retry may help.
        due: when the next scan is due; in the past while one waits or runs, or is tried again.
    """

    name: str
    scan: Scan
    ended: EndedScans
    fault: DedupError | None = None
    pause: float = _FIRST_PAUSE_SECONDS
    due: datetime | None = None


class ScheduledScans:
    """Scans some tables whenever a trigger fires, one after another."""

    def __init__(
        self,
        scans: Mapping[str, Scan],
        trigger: BaseTrigger,
        on_scan: Callable[[ScanReport], None],
        on_error: Callable[[str, DedupError], None],
        on_wait: Callable[[datetime], None] = lambda _: None,
    ) -> None:
        """Prepare; nothing runs yet.

        Args:
            scans: table name -> a full scan of it, which raises a DedupError where it fails.
            trigger: when to scan.
            on_scan: called after each scan that has finished.
            on_error: called after each scan that failed; the schedule goes on. Where the error
                may pass, such as a database that is away or another scan of the table, the scan is tried
                again soon, and this is called once.
            on_wait: called with the time of the next scan, with its time zone, whenever no scan is due.
        """
        self._tables = [_Table(name, scan, EndedScans(name)) for name, scan in scans.items()]
        self._trigger, self._on_scan, self._on_error, self._on_wait = trigger, on_scan, on_error, on_wait
        # One thread: scans of several tables at the same time would compete for memory and processors.
        self._scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(1)})
        self._stop = threading.Event()
        self._scanning = threading.Lock()

    def run(self, stop: threading.Event, at_once: Collection[str] = ()) -> None:
        """Scan until `stop` is set; the tables `at_once` also right away.

        A scan that is due before the last one of the same table has ended is skipped. One that is late,
        because the scan of another table takes long or the machine was asleep, runs once, as soon as it can.
        """
        self._stop = stop
        for table in self._tables:
            first: dict[str, Any] = {"next_run_time": self._now()} if table.name in at_once else {}
            self._add_job(table, table.name, self._scan, self._trigger, **first)
            table.due = first.get("next_run_time", self._next())
        self._tell_next()
        with starting_threads():
            self._scheduler.start()
        while not stop.wait(_CLOCK_SECONDS):
            # Its own wait does not count the time that the machine sleeps, and does not see its clock set.
            self._scheduler.wakeup()
        # A scan that fails asks for another attempt, for which it needs a lock that a shutdown keeps while it
        # waits for the scan.
        self._scheduler.shutdown(wait=False)
        with self._scanning:
            pass  # the scan that runs has ended, and no other begins

    def _next(self) -> datetime | None:
        """Return when the trigger fires next; None if never."""
        due: datetime | None = self._trigger.get_next_fire_time(None, self._now())
        return due

    def _tell_next(self) -> None:
        """Tell when the next scan is, unless one is due or about to be tried again."""
        due = min((table.due for table in self._tables if table.due is not None), default=None)
        if due is not None and due > datetime.now(UTC) and not self._stop.is_set():
            self._on_wait(due)

    def _now(self) -> datetime:
        return datetime.now(self._scheduler.timezone)

    def _add_job(
        self,
        table: _Table,
        job_id: str,
        job: Callable[[_Table], None],
        trigger: BaseTrigger,
        **options: Any,
    ) -> None:
        self._scheduler.add_job(
            job,
            trigger,
            args=(table,),
            id=job_id,
            name=f"scan of {table.name}",
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            replace_existing=True,
            **options,
        )

    def _scan(self, table: _Table) -> None:
        with self._scanning:
            if self._stop.is_set():
                return
            try:
                report = table.scan()
            except Exception as error:
                self._note_fault(table, table.ended.judged(error))
            else:
                logger.info("a scheduled scan finished", extra={"table": table.name, "rows": report.rows})
                table.fault, table.pause = None, _FIRST_PAUSE_SECONDS
                table.ended.reset()
                self._on_scan(report)
            if table.fault is None or not table.fault.is_transient:
                table.due = self._next()
            self._tell_next()

    def _scan_again(self, table: _Table) -> None:
        """Scan unless a scan has finished meanwhile."""
        if table.fault is not None:
            self._scan(table)

    def _note_fault(self, table: _Table, fault: DedupError) -> None:
        logger.info("a scheduled scan failed", extra={"table": table.name})
        is_news = str(table.fault) != str(fault)
        table.fault = fault
        if is_news or not fault.is_transient:
            self._on_error(table.name, fault)
        if fault.is_transient:
            again = DateTrigger(self._now() + timedelta(seconds=table.pause))
            self._add_job(table, f"{table.name}, again", self._scan_again, again)
            table.pause = min(2 * table.pause, _LONGEST_PAUSE_SECONDS)


def _named_weekdays(field: str) -> str:
    """Return weekdays by name: a crontab counts from Sunday, 0 or 7, APScheduler from Monday."""
    return field if field == "*" else ",".join(map(_weekdays, field.split(",")))


def _weekdays(part: str) -> str:
    found = re.fullmatch(r"(\*|(\d)(?:-(\d))?)(?:/([1-9]))?", part)
    if found is None:
        return part  # names, which mean the same in a crontab and in APScheduler
    first, last = (0, 6) if found[1] == "*" else (int(found[2]), int(found[3] or found[2]))
    if not first <= last <= 7:
        raise ValueError(Phrase("no weekdays {part}: they go from 0, Sunday, to 7", part=part))
    return ",".join(_WEEKDAYS[day % 7] for day in range(first, last + 1, int(found[4] or 1)))
