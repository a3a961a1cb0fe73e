"""db-dedup beside other packages on the same texts: precision, recall, F1 and CPU seconds.

`pip install -c constraints.txt -e ".[peers]"` brings them, but for text-dedup, whose pins (rich before 14,
urllib3 up to 2.0, click before 9) shut ours out. It runs as a program in an environment of its own:

    python3 -m venv text-dedup
    text-dedup/bin/pip install "datasets>=2.17" bitarray "click<9" click-option-group xxhash regex ftfy tqdm \
        scipy "rich<14" psutil "urllib3<=2.0" setuptools
    text-dedup/bin/pip install --no-deps text-dedup==0.4.0
    export TEXT_DEDUP_PYTHON=$PWD/text-dedup/bin/python

Each peer is measured at a setting of its own documentation, and at that of those tried which does best on
these very texts: an advantage that db-dedup does not get, whose presets are the same everywhere.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.cpu import median_cpu_seconds
from benchmarks.materials import MOST_EDITS, Material, labelled_petitions, planted_edits
from benchmarks.peer_packages import PEERS, Peer, Setting
from benchmarks.scanning import fill, scan_copy, watch
from benchmarks.scores import HEADER, Pair, score

RUNS = 3


@dataclass(frozen=True)
class Sizes:
    """How many texts; of the petitions at most so many."""

    petitions: int = 1_000_000
    originals: int = 8_000
    repeats: int = 2_000


SMALL = Sizes(petitions=200, originals=160, repeats=40)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print a table for each of the two materials; without data, for the planted edits alone."""
    print(
        f"CPU seconds: user and system, child processes included, from texts to pairs, medians of {RUNS}; "
        "db-dedup reads them from a SQLite file and writes its answer there"
    )
    for peer in PEERS:
        if why := peer.missing():
            print(f"NOT MEASURED: {peer.name}: {why}")
    if data is not None:
        compare(labelled_petitions(data, sizes.petitions))
    compare(planted_edits(data, sizes.originals, sizes.repeats))


def compare(material: Material) -> None:
    """Print one table."""
    by_edits = [f" {f'{n} edits':>7}" for n in range(1, MOST_EDITS + 1)] if material.edits else []
    print(f"\n{material.name}")
    print(f"{'':<22} {'setting':<28} {HEADER} {'CPU s':>7}{''.join(by_edits)}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.db"
        fill(source, material.rows)
        for preset in ("balanced", "strict"):
            watched = watch(dict.fromkeys(material.columns, 1), preset=preset)
            scan_copy(source, watched)  # loads dictionaries and compiled kernels
            measure("db-dedup", f"preset {preset}", partial(scan_copy, source, watched), material)
    for peer in PEERS:
        if peer.missing():
            continue
        own, best = peer.recommended, best_of_tried(peer, material)
        measure(peer.name, f"{own}", partial(peer.find, material, own), material)
        measure(peer.name, f"best here: {best}", partial(peer.find, material, best), material)


def best_of_tried(peer: Peer, material: Material) -> Setting:
    """The setting with the highest F1."""
    return max(peer.tried, key=lambda setting: score(peer.find(material, setting), material.wanted).f1)


def measure(name: str, setting: str, find: Callable[[], set[Pair]], material: Material) -> None:
    """Print one line."""
    found, seconds = median_cpu_seconds(find, RUNS)
    result = score(found, material.wanted)
    by_edits = []
    for count in range(1, MOST_EDITS + 1) if material.edits else ():
        planted = {pair for pair, edits in material.edits.items() if edits == count}
        by_edits.append(f" {len(planted & found) / max(1, len(planted)):>7.3f}")
    print(f"{name:<22} {setting:<28} {result} {seconds:>7.2f}{''.join(by_edits)}", flush=True)
