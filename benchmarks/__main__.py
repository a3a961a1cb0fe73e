"""Run benchmarks: `python -m benchmarks --help`, or `make bench` for the headline figures."""

import argparse
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import DATABASES

WITHOUT_DATA = (
    "candidates",
    "long_keys",
    "generators",
    "equal_rows",
    "long_runs",
    "lookups",
    "exact_first",
    "checks",
    "console_pages",
    "indexes",
    "scan_costs",
    "quickstart",
    "start",
    "trigger_cost",
    "committing_clients",
    "worker_edits",
    "worker_groups",
    "latency",
    "peers",
    "planted_changes",
    "frame_drift",
    "side_by_side",
    "growth",
    "large",
    "plans",
    "spark_scan",
    "other_engines",
    "papers.p1_hashes",
    "papers.p1_quality",
    "papers.p1_clusters",
    "papers.p1_stores",
    "papers.p3_short_texts",
)
WITH_DATA = (
    "petitions",
    "kinds",
    "measures",
    "databases",
    "sizes",
    "whole_scans",
    "reading",
    "recall",
    "short_texts",
    "prefixes",
    "record_linkage",
    "frames",
    "languages",
    "long_letters",
    "papers.p2_tweets",
    "papers.p4_news",
    "papers.p5_codes",
)
QUICK = (
    "candidates",
    "side_by_side",
    "quickstart",
    "planted_changes",
    "petitions",
    "frames",
    "short_texts",
    "kinds",
    "whole_scans",
)
"""The part with the headline figures."""


def main() -> None:
    """Run the named benchmarks, or those of a part that the data allows."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Print the figures of the docs."
    )
    parser.add_argument("names", nargs="*", choices=[*WITHOUT_DATA, *WITH_DATA, []], help="default: a part")
    parser.add_argument("--part", choices=("quick", "long"), default="quick", help="long: all benchmarks")
    parser.add_argument("--data", type=Path, help="folder with petitions-gold/ and cn-law-articles/")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that they run")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=NUMBER", help="another size, such as rows=20000"
    )
    parser.add_argument("--database", action="append", choices=DATABASES, help="default: all three")
    chosen = parser.parse_args()
    part = QUICK if chosen.part == "quick" else (*WITHOUT_DATA, *WITH_DATA)
    if chosen.data and not chosen.data.is_dir():
        parser.error(f"--data: there is no folder {chosen.data}")
    names = chosen.names or [name for name in part if chosen.data or name not in WITH_DATA]
    for name in names:
        if name in WITH_DATA and not chosen.data:
            parser.error(f"{name} needs --data FOLDER")
        module = import_module(f"benchmarks.{name}")
        try:
            options = options_for(module, chosen)
        except (TypeError, ValueError) as error:
            parser.error(f"{name}: {error}")
        print(f"\n== {name} ==")
        try:
            module.run(chosen.data, **options)
        except FileNotFoundError as error:
            if chosen.data is None or not Path(error.filename or "").is_relative_to(chosen.data):
                raise
            parser.error(f"{name} needs {error.filename}")
    if not chosen.names and not chosen.data:
        print(f"\nnot run without --data: {', '.join(name for name in part if name in WITH_DATA)}")


def options_for(module: ModuleType, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments of a benchmark's `run`.

    Raises:
        TypeError: it does not take such an option, or has no such size.
        ValueError: a size is no number.
    """
    options: dict[str, Any] = {}
    if chosen.database:
        options["databases"] = chosen.database
    if chosen.small or chosen.size:
        sizes = getattr(module, "SMALL" if chosen.small else "Sizes", None)
        if sizes is None:
            raise TypeError("its sizes are fixed")
        own = dict(size.split("=", 1) for size in chosen.size)
        start = sizes if chosen.small else sizes()
        options["sizes"] = replace(start, **{size: int(number) for size, number in own.items()})
    if not options.keys() <= signature(module.run).parameters.keys():
        raise TypeError("it takes no --database")
    return options


if __name__ == "__main__":
    main()
