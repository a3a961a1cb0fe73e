"""What `worker`, `schedule` and `run` share: tables that are opened when their work begins."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from db_dedup.cli.shared.options import OpenTable
from db_dedup.cli.shared.terminal import say
from db_dedup.errors import DedupError
from db_dedup.jobs.worker.change_worker import LateTable, TableWorker
from db_dedup.jobs.worker.scheduled_scans import Scan, StoppedError
from db_dedup.plurals import counted
from db_dedup.present.scan_words import changes_of
from db_dedup.records import ScanReport


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
