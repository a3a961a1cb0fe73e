"""Run benchmarks: `python -m benchmarks [--data FOLDER] [NAME ...]`, or `make bench DATA=FOLDER`."""

import argparse
from importlib import import_module
from pathlib import Path

WITHOUT_DATA = ("candidates", "equal_rows", "lookups", "indexes", "scan_times")
WITH_DATA = ("petitions", "databases", "law")


def main() -> None:
    """Run the named benchmarks, or all that the data allows."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Print the figures of the docs."
    )
    parser.add_argument("names", nargs="*", choices=[*WITHOUT_DATA, *WITH_DATA, []], help="default: all")
    parser.add_argument("--data", type=Path, help="folder with petitions-gold/ and cn-law-articles/")
    chosen = parser.parse_args()
    names = chosen.names or [*WITHOUT_DATA, *(WITH_DATA if chosen.data else ())]
    for name in names:
        if name in WITH_DATA and not chosen.data:
            parser.error(f"{name} needs --data FOLDER")
        print(f"\n== {name} ==")
        import_module(f"benchmarks.{name}").run(chosen.data)
    if not chosen.names and not chosen.data:
        print(f"\nnot run without --data: {', '.join(WITH_DATA)}")


if __name__ == "__main__":
    main()
