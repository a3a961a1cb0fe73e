"""First scans of long English letters by the command line: all of them share features and many hashes.

The letters are consumer complaints, put together until each has so many characters. So few of them are
duplicates of each other, and each two of them have to be compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import read_english
from benchmarks.growth import print_heading, print_scan, scan_once
from benchmarks.servers import DATABASES, each_database

_CHARACTERS = (1_000, 5_000, 20_000)


@dataclass(frozen=True)
class Sizes:
    """How many letters there are at most of each number of characters."""

    letters: int = 10_000


SMALL = Sizes(letters=20)


def run(data: Path | None, sizes: Sizes = Sizes(), databases: Sequence[str] = DATABASES) -> None:
    """Print wall time, CPU time, peak memory and store of each scan."""
    assert data is not None
    complaints = read_english(data)["cfpb-complaints"]
    print_heading()
    for characters in _CHARACTERS:
        letters = list(_put_together(complaints, characters))[: sizes.letters]
        for name, url in each_database(databases):
            print_scan(f"{characters:,} characters", name, len(letters), scan_once(url, iter(letters)))


def _put_together(texts: Sequence[str], characters: int) -> Iterator[str]:
    """Yield texts of at least so many characters, each of consecutive ones."""
    letter = ""
    for text in texts:
        letter += text + "\n"
        if len(letter) >= characters:
            yield letter
            letter = ""
