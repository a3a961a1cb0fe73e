"""`db-dedup worker`: keep the answer right while the application writes."""

import signal
import threading
from collections import Counter
from contextlib import ExitStack
from typing import Annotated

import typer

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
) -> None:
    """Handle the changes that the triggers queue, until stopped; SIGTERM or Ctrl-C finish the batch first."""
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    handled: Counter[str] = Counter()

    def count(done: Batch) -> None:
        handled.update({"changes": done.changes, "dead": done.dead})

    with ExitStack() as stack:
        opened = [stack.enter_context(open_table(config, url, name)) for name in tables]
        ChangeWorker([dedup.worker(batch) for dedup in opened], poll, count).run(stop, drain=drain)
    say(f"{handled['changes']:,} changes handled, {handled['dead']:,} given up")
