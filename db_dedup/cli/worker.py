"""`db-dedup worker`: keep the answer right while the application writes."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from db_dedup.app import Database
from db_dedup.cli.shared.interrupts import stop_event
from db_dedup.cli.shared.options import DEFAULT_CONFIG, MOST, Config, Url, open_database, table_opener
from db_dedup.cli.shared.terminal import say
from db_dedup.cli.shared.working import MetricsHost, MetricsPort, late_tables, served_metrics
from db_dedup.errors import ConfigError, DedupError
from db_dedup.jobs.worker.batch_size import BATCH_CHANGES
from db_dedup.jobs.worker.change_worker import ChangeWorker, OnFault
from db_dedup.jobs.worker.worker_table import CACHE_MB, Batch
from db_dedup.plurals import counted


def worker(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="The attached tables.")],
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: Annotated[
        str | None,
        typer.Option(
            "--store-url",
            envvar="DB_DEDUP_STORE_URL",
            help="Refused: triggers can queue changes only in the database of the table itself.",
            show_default=False,
        ),
    ] = None,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", envvar="DB_DEDUP_DRAIN", help="Stop when the queues are empty and no scan is due."
        ),
    ] = False,
    poll: Annotated[
        float,
        typer.Option(
            envvar="DB_DEDUP_POLL", min=0.01, max=86400, help="Seconds between two looks at an empty queue."
        ),
    ] = 0.5,
    batch: Annotated[
        int,
        typer.Option(envvar="DB_DEDUP_BATCH", min=1, max=MOST, help="Changes in one transaction, at most."),
    ] = BATCH_CHANGES,
    cache: Annotated[
        int,
        typer.Option(
            envvar="DB_DEDUP_CACHE",
            min=0,
            max=MOST,
            help="Megabytes of memory, for each table, for the features of compared rows.",
        ),
    ] = CACHE_MB,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
) -> None:
    """Handle the changes that the triggers queue, until stopped; SIGTERM or Ctrl-C finish the batch first."""
    handled: Counter[str] = Counter()
    tell: list[Callable[[Batch], None]] = []
    observe_faults: list[OnFault] = []

    def count(done: Batch) -> None:
        handled.update({"changes": done.changes, "dead": done.dead, "scans": int(done.is_scan)})
        for observe in tell:
            observe(done)

    def note_fault(name: str, fault: DedupError | None) -> None:
        if fault is None:
            say("{name}: works again", name=name)
        else:
            # To drain, a table that only people can mend is left, and named once more at the end.
            is_left = drain and not fault.is_transient
            say("{name}: {fault}" if is_left else "{name}: {fault}; trying again", name=name, fault=fault)
        for observe in observe_faults:
            observe(name, fault)

    names = list(dict.fromkeys(tables))
    with ExitStack() as stack:
        stop = stack.enter_context(stop_event())
        # A URL that can never work is an error at once; a server may come later.
        database = stack.enter_context(open_database(config, url, store_url))
        _refuse_store(database)
        opener = table_opener(config, url)
        workers = late_tables(opener, names, batch, cache)
        for worker in workers:
            stack.callback(worker.forget)
        if metrics_port is not None:
            metrics = stack.enter_context(served_metrics(database, names, metrics_host, metrics_port))
            tell.append(metrics.observe)
            observe_faults.append(metrics.observe_fault)
        ChangeWorker(workers, poll, count, note_fault).run(stop, drain=drain)
    say(
        "{changes} handled, {dead:,} given up, {scans}",
        changes=counted(handled["changes"], "change"),
        dead=handled["dead"],
        scans=counted(handled["scans"], "scan"),
    )


def _refuse_store(database: Database) -> None:
    if database.is_apart:
        raise ConfigError(
            "a worker needs our tables in the database of its table, because the triggers write each change "
            "into a queue there: leave store_url (--store-url, DB_DEDUP_STORE_URL) out and run upgrade, scan "
            "and attach; or keep the store, and let `db-dedup schedule` scan again and again"
        )
