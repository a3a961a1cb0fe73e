"""What `worker`, `schedule` and `run` share: tables that are opened when their work begins, and metrics."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from db_dedup.app import Database
from db_dedup.cli.shared.options import OpenTable
from db_dedup.cli.shared.terminal import say
from db_dedup.errors import DedupError
from db_dedup.jobs.stopping import StoppedError
from db_dedup.jobs.worker.change_worker import LateTable
from db_dedup.jobs.worker.scheduled_scans import Scan
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.plurals import counted
from db_dedup.present.scan_words import changes_of
from db_dedup.records import ScanReport

if TYPE_CHECKING:
    from db_dedup.jobs.worker.metrics import WorkerMetrics


MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        envvar="DB_DEDUP_METRICS_PORT",
        min=0,
        max=65535,
        help="Serve metrics for Prometheus on this port; 0 takes a free one. Left out, there are none.",
        show_default=False,
    ),
]
MetricsHost = Annotated[
    str,
    typer.Option("--metrics-host", envvar="DB_DEDUP_METRICS_HOST", help="The address to serve metrics on."),
]


@contextmanager
def served_metrics(
    database: Database, names: Sequence[str], host: str, port: int
) -> Iterator["WorkerMetrics"]:
    """Serve metrics until the block ends; yield the object that counts batches and faults."""
    # Only who asks for metrics waits for this, and needs its extra.
    from db_dedup.jobs.worker.metrics import WorkerMetrics  # noqa: PLC0415

    metrics = WorkerMetrics(database.engine, database.tables, names)
    with metrics.served(host, port) as opened_port:
        say("metrics on http://{host}:{port}/metrics", host=host, port=opened_port)
        yield metrics


def late_tables(opener: OpenTable, names: Sequence[str], batch: int, cache: int) -> list[LateTable]:
    """Return the tables for a worker; batches and memory as `Deduplicator.worker` takes them."""
    return [LateTable(name, partial(_opened_worker, opener, name, batch, cache)) for name in names]


@contextmanager
def _opened_worker(opener: OpenTable, name: str, batch: int, cache: int) -> Iterator[TableWorker]:
    with opener(name) as dedup:
        yield dedup.worker(batch, cache)


def scans_of(opener: OpenTable, names: Sequence[str]) -> dict[str, Scan]:
    """Return table name -> a full scan of it."""
    return {name: partial(_scan, opener, name) for name in names}


def _scan(opener: OpenTable, name: str) -> ScanReport:
    with opener(name) as dedup:
        return dedup.scan()


def tell_scan(report: ScanReport) -> None:
    """Print what a scheduled scan changed."""
    say(
        "{table}: {rows} in {seconds:.1f} s; against what was stored: {changes}",
        table=report.table,
        rows=counted(report.rows, "row"),
        seconds=report.seconds,
        changes=changes_of(report),
    )


def tell_scan_fault(name: str, error: DedupError) -> None:
    """Print why a scheduled scan failed."""
    if isinstance(error, StoppedError):
        say("{name}: {error}", name=name, error=error)
    elif error.is_transient:
        say("{name}: {error}; trying again", name=name, error=error)
    else:
        say("{name}: error: {error}", name=name, error=error)


def tell_wait(until: datetime) -> None:
    """Print when the next scheduled scan is."""
    say("next scan: {time}", time=until.isoformat(" ", "minutes"))
