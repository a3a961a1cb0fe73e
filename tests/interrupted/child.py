"""The command line in a process of its own, which stops at one point of a scan and says so on stdout.

It goes on when it reads a line, unless something else happens to it: `python -m tests.interrupted.child POINT
scan petitions`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partialmethod
from itertools import count
from typing import Any

from db_dedup.cli import main
from db_dedup.engines.embedded import engine, table_scan
from db_dedup.jobs import pace
from db_dedup.jobs.scan import answer, frozen_frames, full_scan, reading
from db_dedup.jobs.scan.full_scan import FullScan
from db_dedup.jobs.scan.short_transactions import ShortTransactions
from db_dedup.jobs.scan.writing_ahead import AheadWriter, WritingAhead
from db_dedup.store import index_building, pairs, segments, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.source import Source

ROWS_A_PAGE = 20
WITH_A_PROCESS = "TESTED_WITH_A_PROCESS"


def before(owner: Any, name: str, nth: int = 1) -> None:
    """Stop before the nth call of a function."""
    original, calls = getattr(owner, name), count(1)

    def stopping(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == nth:
            stop()
        return original(*args, **kwargs)

    setattr(owner, name, stopping)


def after(owner: Any, name: str, nth: int = 1) -> None:
    """Stop after the nth call of a function."""
    original, calls = getattr(owner, name), count(1)

    def stopping(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if next(calls) == nth:
            stop()
        return result

    setattr(owner, name, stopping)


def while_matching() -> None:
    """Stop before the search for pairs, when what is written beside it has been written: a process that is
    suspended in the middle of a transaction holds its locks, and others wait for them."""
    begin, begun = WritingAhead.__init__, []

    def beginning(ahead: WritingAhead, *arguments: Any) -> None:
        begin(ahead, *arguments)
        begun.append(ahead)

    scan_module: Any = table_scan
    match = scan_module.match_table

    def matching(*arguments: Any, **named: Any) -> Any:
        for ahead in begun:
            ahead.written()
        stop()
        return match(*arguments, **named)

    changed: Any = WritingAhead
    changed.__init__ = beginning
    scan_module.match_table = matching


def before_a_step_of_spark(name: str) -> None:
    """Stop the driver of Spark before a step of its scan."""
    from db_dedup.engines.spark.table_scan import SparkScan  # noqa: PLC0415 - it needs the extra

    before(SparkScan, name)


def stop() -> None:
    sys.stdout.write("here\n")
    sys.stdout.flush()
    sys.stdin.readline()


POINTS: dict[str, Callable[[], None]] = {
    "Spark has read": lambda: before_a_step_of_spark("_taken"),
    "Spark confirms": lambda: before_a_step_of_spark("_confirmed"),
    "measuring the frames": lambda: before(frozen_frames, "measure", nth=1),
    "reading": lambda: before(Source, "_page", nth=3),
    "writing a page": lambda: after(FingerprintStore, "put_rows", nth=2),
    "between pages": lambda: before(reading, "_done", nth=3),
    "linking copies": lambda: after(AheadWriter, "_write_links"),
    "matching": while_matching,
    "writing the pairs": lambda: after(answer, "insert_pairs", nth=2),
    "writing the entries": lambda: after(segments, "put_parts"),
    "between pieces": lambda: before(ShortTransactions, "_begin", nth=8),
    "making the indexes": lambda: after(index_building, "missing_indexes", nth=3),
    "switching": lambda: after(watched_tables, "serve_recipe"),
    "switched": lambda: before(FullScan, "_remove_former"),
    "removing the entries": lambda: after(segments, "drop_segments", nth=2),
    "between removals": lambda: before(pairs, "count_pairs_by_row"),
    "removing the fingerprints": lambda: after(FingerprintStore, "delete_rows", nth=2),
}


def run() -> None:
    point = sys.argv.pop(1)
    changed: Any = Source
    changed.pages = partialmethod(Source.pages, page_size=ROWS_A_PAGE)
    # Each piece is a transaction of its own.
    for name in ("_ONE_WRITER", "_MANY_WRITERS"):
        setattr(pace, name, pace.Pace(seconds=0, gap_seconds=0, rows=ROWS_A_PAGE))
    if os.environ.get(WITH_A_PROCESS):
        engine._ROWS_WORTH_A_PROCESS = 1
    full_scan._ROWS_WORTH_NEW_INDEXES = 1
    POINTS[point]()
    main()


if __name__ == "__main__":
    run()
