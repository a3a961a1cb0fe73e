"""`db-dedup schedule`: a full scan from time to time."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer

from db_dedup.cli.differences import changes_of
from db_dedup.cli.options import DEFAULT_CONFIG, Config, StoreUrl, Url, open_table
from db_dedup.cli.terminal import say
from db_dedup.errors import ConfigError, DedupError
from db_dedup.jobs.scheduled_scans import (
    ScheduledScans,
    StoppableProgress,
    StoppedError,
    cron_trigger,
    interval_trigger,
)
from db_dedup.progress import NullProgress
from db_dedup.records import ScanReport


def schedule(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="The tables to scan.")],
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    cron: Annotated[
        str | None,
        typer.Option(
            "--cron",
            envvar="DB_DEDUP_CRON",
            help="When, as in a crontab and in the machine's time zone: '0 2 * * *' is every night at two.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option("--every", envvar="DB_DEDUP_EVERY", help="How often: 30m, 6h, 1d.", show_default=False),
    ] = None,
    once_now: Annotated[
        bool, typer.Option("--once-now", envvar="DB_DEDUP_ONCE_NOW", help="Scan right away, too.")
    ] = False,
) -> None:
    """Scan the tables from time to time, until stopped, and say what each scan changed.

    A scan that is stopped by SIGTERM or Ctrl-C, or that fails, leaves the last complete answer as it was.
    """
    if (cron is None) == (every is None):
        raise ConfigError("say when: either --cron '0 2 * * *' or --every 6h")
    trigger = cron_trigger(cron) if cron is not None else interval_trigger(every or "")
    with _stopped_by_signals() as stop, ExitStack() as stack:
        progress = StoppableProgress(NullProgress(), stop)
        opened = {
            name: stack.enter_context(open_table(config, url, name, progress, store_url))
            for name in dict.fromkeys(tables)
        }
        scans = {name: dedup.scan for name, dedup in opened.items()}
        ScheduledScans(scans, trigger, _tell, _tell_error).run(stop, once_now=once_now)


def _tell(report: ScanReport) -> None:
    say(
        f"{report.table}: {report.rows:,} rows in {report.seconds:.1f} s; "
        f"against what was stored: {changes_of(report)}"
    )


def _tell_error(name: str, error: DedupError) -> None:
    say(f"{name}: {error}" if isinstance(error, StoppedError) else f"{name}: error: {error}")


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C set until the block ends."""
    stop = threading.Event()
    before = {name: signal.signal(name, lambda *_: stop.set()) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
