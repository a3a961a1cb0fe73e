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
from db_dedup.engines.embedded import table_scan
from db_dedup.jobs import reading
from db_dedup.jobs.full_scan import FullScan
from db_dedup.jobs.reading import TableReading
from db_dedup.store import watched_tables
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


def stop() -> None:
    sys.stdout.write("here\n")
    sys.stdout.flush()
    sys.stdin.readline()


POINTS: dict[str, Callable[[], None]] = {
    "reading": lambda: before(Source, "_source_rows", nth=3),
    "writing a page": lambda: after(FingerprintStore, "put_rows", nth=2),
    "between pages": lambda: before(TableReading, "_done", nth=3),
    "matching": lambda: before(table_scan, "match_table"),
    "switching": lambda: after(watched_tables, "serve_recipe"),
    "switched": lambda: before(FullScan, "_refresh_statistics"),
}


def run() -> None:
    point = sys.argv.pop(1)
    changed: Any = Source
    changed.pages = partialmethod(Source.pages, page_size=ROWS_A_PAGE)
    if os.environ.get(WITH_A_PROCESS):
        reading._ROWS_WORTH_A_PROCESS = 1
    POINTS[point]()
    main()


if __name__ == "__main__":
    run()
