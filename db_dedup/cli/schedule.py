"""`db-dedup schedule`: a full scan from time to time."""

from collections.abc import Sequence
from typing import Annotated

import typer

from db_dedup.cli.shared.interrupts import stop_event
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    Config,
    OpenTable,
    StoreUrl,
    Url,
    open_database,
    table_opener,
)
from db_dedup.cli.shared.working import scans_of, tell_scan, tell_scan_fault, tell_wait
from db_dedup.errors import ConfigError, DedupError
from db_dedup.jobs.stopping import StoppableProgress
from db_dedup.jobs.worker.change_worker import common_fault
from db_dedup.jobs.worker.scheduled_scans import (
    ScheduledScans,
    cron_trigger,
    interval_trigger,
)
from db_dedup.progress import NullProgress


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
    names = list(dict.fromkeys(tables))
    with stop_event() as stop:
        opener = table_opener(config, url, StoppableProgress(NullProgress(), stop), store_url)
        with open_database(config, url, store_url):
            _check(opener, names)
        scans = ScheduledScans(scans_of(opener, names), trigger, tell_scan, tell_scan_fault, tell_wait)
        scans.run(stop, at_once=names if once_now else ())


def _check(opener: OpenTable, names: Sequence[str]) -> None:
    """Report the tables that cannot be scanned now; they may be repaired while others are scanned.

    Raises:
        DedupError: none of them can be scanned, and no retry helps.
    """
    faults: dict[str, DedupError] = {}
    for name in names:
        try:
            with opener(name) as dedup:
                dedup.require_scannable()
        except DedupError as error:
            if not error.is_transient:
                faults[name] = error
    if len(faults) == len(names):
        raise common_fault(faults, of=len(names))
    for name, fault in faults.items():
        tell_scan_fault(name, fault)
