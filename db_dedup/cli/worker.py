"""`db-dedup worker`: keep the answer right while the application writes."""

import signal
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from db_dedup.app import Deduplicator
from db_dedup.cli.options import DEFAULT_CONFIG, Config, Url, open_table
from db_dedup.cli.terminal import say
from db_dedup.jobs.change_worker import BATCH_CHANGES, Batch, ChangeWorker
from db_dedup.jobs.metrics import WorkerMetrics


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
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    handled: Counter[str] = Counter()

    def count(done: Batch) -> None:
        handled.update({"changes": done.changes, "dead": done.dead})
        if metrics is not None:
            metrics.observe(done)

    with ExitStack() as stack:
        opened = [stack.enter_context(open_table(config, url, name)) for name in tables]
        workers = [dedup.worker(batch) for dedup in opened]
        metrics = None if metrics_port is None else _metrics(opened)
        if metrics is not None and metrics_port is not None:
            port = stack.enter_context(metrics.served(metrics_host, metrics_port))
            say(f"metrics on http://{metrics_host}:{port}/metrics")
        ChangeWorker(workers, poll, count).run(stop, drain=drain)
    say(f"{handled['changes']:,} changes handled, {handled['dead']:,} given up")


def _metrics(opened: Sequence[Deduplicator]) -> WorkerMetrics:
    """Metrics of tables that are all in one database."""
    database = opened[0].database
    return WorkerMetrics(database.engine, database.tables, [dedup.name for dedup in opened])
