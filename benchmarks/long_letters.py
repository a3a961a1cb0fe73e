"""First scans of long English letters by the command line: all of them share features and many hashes.

The letters are consumer complaints, put together until each has so many characters. So few of them are
duplicates of each other, and each two of them have to be compared.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import read_english
from benchmarks.growth import fill, scan, warm_up
from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database


@dataclass(frozen=True)
class Sizes:
    """How many letters there are at most, and of how many characters at least: one size after the other."""

    letters: int = 10_000
    shortest: int = 1_000
    long: int = 5_000
    longest: int = 20_000


SMALL = Sizes(letters=20)


def run(data: Path | None, sizes: Sizes = Sizes(), databases: Sequence[str] = DATABASES) -> None:
    """Print wall time, CPU time and peak memory of each scan."""
    assert data is not None
    complaints = read_english(data)["cfpb-complaints"]
    print("first scan at the default preset, by the command line; memory: anonymous, of db_dedup's processes")
    print(f"{'characters':>10} {'letters':>8} {'database':<11} {'wall s':>8} {'CPU s':>8} {'MB':>7}")
    warm_up()
    for characters in (sizes.shortest, sizes.long, sizes.longest):
        letters = list(_put_together(complaints, characters))[: sizes.letters]
        for name, url in each_database(databases):
            with closing(Database(url, create=True)) as database, tempfile.TemporaryDirectory() as folder:
                fill(database, iter(letters))
                taken = scan(url, Path(folder))
            print(
                f"{characters:>10,} {len(letters):>8,} {name:<11} {taken.wall:>8.1f} {taken.cpu:>8.1f} "
                f"{taken.anonymous:>7.0f}",
                flush=True,
            )


def _put_together(texts: Sequence[str], characters: int) -> Iterator[str]:
    """Yield texts of at least so many characters, each of consecutive ones."""
    letter = ""
    for text in texts:
        letter += text + "\n"
        if len(letter) >= characters:
            yield letter
            letter = ""
