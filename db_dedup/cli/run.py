"""`db-dedup run`: worker, schedule and HTTP service in one process, as `dedup.toml` says."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from apscheduler.triggers.base import BaseTrigger

from db_dedup.app import Database
from db_dedup.cli.shared.interrupts import stop_event
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    Config,
    StoreUrl,
    Url,
    is_given,
    open_database,
    table_opener,
)
from db_dedup.cli.shared.serving import (
    SERVER,
    Host,
    Port,
    ReadOnly,
    TokensFile,
    chosen_server,
    log_requests,
    require_web,
    tell_address,
)
from db_dedup.cli.shared.terminal import say
from db_dedup.cli.shared.working import (
    MetricsHost,
    MetricsPort,
    late_tables,
    scans_of,
    served_metrics,
    tell_scan,
    tell_scan_fault,
    tell_wait,
)
from db_dedup.config import ScheduleSettings, ServerSettings, Settings
from db_dedup.errors import ConfigError, DedupError
from db_dedup.extras import load
from db_dedup.flow.threads import starting_threads
from db_dedup.jobs.leading import Leading, Work
from db_dedup.jobs.stopping import StoppableProgress
from db_dedup.jobs.worker.batch_size import BATCH_CHANGES
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.scheduled_scans import (
    ScheduledScans,
    cron_trigger,
    interval_trigger,
    was_missed,
)
from db_dedup.jobs.worker.worker_table import CACHE_MB, Batch
from db_dedup.progress import NullProgress
from db_dedup.store.lag import read_lag

if TYPE_CHECKING:
    from db_dedup.jobs.worker.metrics import WorkerMetrics

_SECONDS_UNTIL_REPAIRED: Final = 30.0
_OF_SERVER: Final = ("host", "port", "tokens", "read_only")


def run(
    context: typer.Context,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    host: Host = None,
    port: Port = None,
    tokens: TokensFile = None,
    read_only: ReadOnly = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
) -> None:
    """Run worker, schedule and HTTP service in one process, as the settings file says, until stopped.

    The worker handles the changes of the attached tables. The section schedule of the file says when to scan,
    the section server where to serve; without its section a part does not run. Of several instances one
    leads: it alone works and scans, all of them serve, and another leads when it ends.
    """
    settings = Settings.from_file(config)
    if not settings.serves and any(is_given(context, name) for name in _OF_SERVER):
        raise ConfigError(
            "{path} has no [server], so nothing is served: add it, or leave --host, --port, --tokens and "
            "--read-only out",
            path=config,
        )
    if not settings.tables:
        raise ConfigError("{path} names no table: `db-dedup init` writes one that does", path=config)
    if settings.serves:
        require_web()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_event())
        database = stack.enter_context(open_database(config, url, store_url))
        parts = _Parts(config, url, store_url, database, settings)
        if metrics_port is not None:
            names = list(settings.tables)
            parts.metrics = stack.enter_context(served_metrics(database, names, metrics_host, metrics_port))
        works = parts.works()
        if not works and not settings.serves:
            raise ConfigError(
                "with our tables in another database there is no worker, and {path} has neither [schedule] "
                "nor [server]: add one of them",
                path=config,
            )
        log_requests()
        server = chosen_server(settings.server, host, port, tokens, read_only)
        service = _Service(database, settings, server, stop) if settings.serves else None
        try:
            if works:
                lock = database.dialect.leader_lock(database.engine, database.namespace)
                translate = database.dialect.translate_error
                Leading(lock, works, parts.tell_leading, translate, _tell_waiting).run(stop)
            else:
                stop.wait()
        finally:
            stop.set()
            if service is not None:
                service.end()
    say("stopped")


@dataclass
class _Parts:
    """What the leader does.

    Attributes:
        metrics: counts what the worker does; None if no metrics are served.
    """

    config: Path
    url: str | None
    store_url: str | None
    database: Database
    settings: Settings
    metrics: "WorkerMetrics | None" = None

    def works(self) -> list[Work]:
        """Return the parts that these settings ask for."""
        works: list[Work] = []
        if self.database.is_apart:
            say("no worker: with our tables in another database, changes cannot be queued")
        else:
            works.append(self._handle_changes)
        if self.settings.schedule is not None:
            trigger = _trigger(self.settings.schedule)
            works.append(lambda stop: self._scan(trigger, stop))
        return works

    def tell_leading(self, leads: bool) -> None:
        if not leads:
            say("waiting: another instance leads")
        elif self.settings.schedule is None:
            say("leading: the worker runs here")
        elif self.database.is_apart:
            say("leading: the schedule runs here")
        else:
            say("leading: worker and schedule run here")

    def _handle_changes(self, stop: threading.Event) -> None:
        opener = table_opener(self.config, self.url, StoppableProgress(NullProgress(), stop))
        told = ""
        while not stop.is_set():
            tables = late_tables(opener, list(self.settings.tables), BATCH_CHANGES, CACHE_MB)
            self._mark(None)
            try:
                ChangeWorker(tables, on_batch=self._count, on_fault=self._note_fault).run(stop)
            except DedupError as error:  # no table can be worked on: until somebody repairs one
                if str(error) != told:
                    say("worker: {error}; trying again", error=error)
                told = str(error)
                self._mark(error)
                stop.wait(_SECONDS_UNTIL_REPAIRED)
            finally:
                for table in tables:
                    table.forget()
        self._mark(None)  # it leads no longer, so the table is another instance's

    def _count(self, batch: Batch) -> None:
        if self.metrics is not None:
            self.metrics.observe(batch)

    def _note_fault(self, name: str, fault: DedupError | None) -> None:
        _tell_fault(name, fault)
        if self.metrics is not None:
            self.metrics.observe_fault(name, fault)

    def _mark(self, fault: DedupError | None) -> None:
        """Note the fault of all tables, or that they have none (yet)."""
        if self.metrics is not None:
            for name in self.settings.tables:
                self.metrics.observe_fault(name, fault)

    def _scan(self, trigger: BaseTrigger, stop: threading.Event) -> None:
        progress = StoppableProgress(NullProgress(), stop)
        opener = table_opener(self.config, self.url, progress, self.store_url)
        schedule = self.settings.schedule
        names = list(schedule.tables if schedule and schedule.tables else self.settings.tables)
        scans = ScheduledScans(scans_of(opener, names), trigger, tell_scan, tell_scan_fault, tell_wait)
        scans.run(stop, at_once=self._missed(names, trigger))

    def _missed(self, names: Sequence[str], trigger: BaseTrigger) -> list[str]:
        """Return the tables that should have been scanned while no instance was running."""
        try:
            with self.database.engine.connect() as connection:
                lags = read_lag(connection, self.database.tables)
        except Exception:  # the first scheduled scan will say what is wrong
            return []
        last = {name: lags[name].last_scan_at for name in names if name in lags}
        now = datetime.now(UTC)
        missed = [
            name
            for name, at in last.items()
            if at is not None and was_missed(trigger, at.replace(tzinfo=UTC), now)
        ]
        for name in missed:
            say("{name}: a scheduled scan was missed; scanning now", name=name)
        return missed


class _Service:
    """The HTTP service in a thread of its own."""

    def __init__(
        self, database: Database, settings: Settings, server: ServerSettings, stop: threading.Event
    ) -> None:
        self._fault: BaseException | None = None
        self._thread = threading.Thread(
            target=self._serve, args=(database, settings, server, stop), name="db-dedup-serve"
        )
        with starting_threads():
            self._thread.start()

    def _serve(
        self, database: Database, settings: Settings, server: ServerSettings, stop: threading.Event
    ) -> None:
        try:
            load(SERVER, "web").serve(database, settings, server, stop, tell_address)
        except BaseException as error:  # raised by the main thread
            self._fault = error
        finally:
            stop.set()

    def end(self) -> None:
        """Wait for the end of the requests that run.

        Raises:
            BaseException: what ended the service.
        """
        self._thread.join()
        if self._fault is not None:
            raise self._fault


def _trigger(schedule: ScheduleSettings) -> BaseTrigger:
    if schedule.cron is not None:
        return cron_trigger(schedule.cron, schedule.timezone)
    return interval_trigger(schedule.every or "")


def _tell_waiting(fault: DedupError) -> None:
    say("waiting: {fault}; trying again", fault=fault)


def _tell_fault(name: str, fault: DedupError | None) -> None:
    if fault is None:
        say("{name}: works again", name=name)
    else:
        say("{name}: {fault}; trying again", name=name, fault=fault)
