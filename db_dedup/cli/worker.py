"""`db-dedup worker`: keep the answer right while the application writes."""

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer

from db_dedup.app import Deduplicator
from db_dedup.cli.options import DEFAULT_CONFIG, Config, Url, open_table
from db_dedup.cli.terminal import say
from db_dedup.jobs.change_worker import BATCH_CHANGES, Batch, ChangeWorker


def worker(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="The attached tables.")],
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    drain: Annotated[
        bool, typer.Option("--drain", envvar="DB_DEDUP_DRAIN", help="Stop when the queues are empty.")
    ] = False,
    poll: Annotated[
        float,
        typer.Option(envvar="DB_DEDUP_POLL", min=0.01, help="Seconds between two looks at an empty queue."),
    ] = 0.5,
    batch: Annotated[
        int, typer.Option(envvar="DB_DEDUP_BATCH", min=1, help="Changes in one transaction, at most.")
    ] = BATCH_CHANGES,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            envvar="DB_DEDUP_METRICS_PORT",
            min=0,
            max=65535,
            help="Serve metrics for Prometheus on this port; 0 takes a free one.",
            show_default="off",
        ),
    ] = None,
    metrics_host: Annotated[
        str,
        typer.Option(
            "--metrics-host", envvar="DB_DEDUP_METRICS_HOST", help="The address to serve metrics on."
        ),
    ] = "127.0.0.1",
) -> None:
    """Handle the changes that the triggers queue, until stopped; SIGTERM or Ctrl-C finish the batch first."""
    handled: Counter[str] = Counter()
    tell: list[Callable[[Batch], None]] = []

    def count(done: Batch) -> None:
        handled.update({"changes": done.changes, "dead": done.dead, "scans": int(done.is_scan)})
        for observe in tell:
            observe(done)

    with ExitStack() as stack:
        stop = stack.enter_context(_stopped_by_signal())
        opened = [stack.enter_context(open_table(config, url, name)) for name in tables]
        workers = [dedup.worker(batch) for dedup in opened]
        if metrics_port is not None:
            tell.append(stack.enter_context(_metrics(opened, metrics_host, metrics_port)))
        ChangeWorker(workers, poll, count).run(stop, drain=drain)
    say(f"{handled['changes']:,} changes handled, {handled['dead']:,} given up, {handled['scans']:,} scans")


@contextmanager
def _stopped_by_signal() -> Iterator[threading.Event]:
    """What SIGTERM and Ctrl-C set while the block runs."""
    stop = threading.Event()
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    for name in before:
        signal.signal(name, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@contextmanager
def _metrics(opened: Sequence[Deduplicator], host: str, port: int) -> Iterator[Callable[[Batch], None]]:
    """Serve metrics until the block ends; gives whom to tell of each batch."""
    # Only who asks for metrics waits for this, and needs its extra.
    from db_dedup.jobs.metrics import WorkerMetrics  # noqa: PLC0415

    database = opened[0].database
    metrics = WorkerMetrics(database.engine, database.tables, [dedup.name for dedup in opened])
    with metrics.served(host, port) as opened_port:
        say(f"metrics on http://{host}:{opened_port}/metrics")
        yield metrics.observe
