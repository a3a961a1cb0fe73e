"""Time and memory of matching up to a million equal rows and 100,000 near-equal ones."""

import subprocess
import sys
from pathlib import Path

_CODE = """
import resource, sys
from time import perf_counter
import numpy as np
from db_dedup.flow.candidates.sketches import NO_SKETCHES
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import match_table
from db_dedup.flow.features.counting import Features
from db_dedup.flow.fingerprints.simhash import fingerprint_rows
from db_dedup.progress import NullProgress
from db_dedup.records.calibration import PairSetting

kind, rows = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(1)
size = 60
template = np.sort(rng.integers(2, 2**64, size, dtype=np.uint64))
hashes = np.tile(template, rows).reshape(rows, size)
digests = np.tile(rng.integers(1, 2**63, 2, dtype=np.uint64), (rows, 1))
if kind == "near-equal":
    for column in (7, 23, 41):
        hashes[:, column] = rng.integers(2, 2**64, rows, dtype=np.uint64)
    hashes.sort(axis=1)
    digests = rng.integers(1, 2**63, (rows, 2), dtype=np.uint64)
starts = np.arange(rows + 1, dtype=np.int64) * size
features = Features(starts, hashes.ravel(), np.ones(rows * size, np.int64))
fingerprints = fingerprint_rows(features.starts, features.hashes, features.weights)
def first_rows(n):
    within, places = np.zeros(n, np.int32), np.arange(n)
    flags = np.ones(n, np.bool_)
    return ComparedRows(
        fingerprints[:n], flags, digests[:n], within, features, places, NO_SKETCHES, places
    )

table, small = first_rows(rows), first_rows(2)
rule = Rule(PairSetting(11, False, "word_jaccard", 0.5))
match_table(small, rule, 1000, NullProgress())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = perf_counter()
matches = match_table(table, rule, 1000, NullProgress())
seconds = perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
groups = np.unique(matches.group_of[matches.group_of >= 0]).size
print(f"{rows:>9,} {kind} rows: {seconds:6.2f} s, {(after - before) / 1024:6.0f} MB for the matching, "
      f"{matches.pairs.left.size:,} pairs, {np.count_nonzero(matches.copy_of >= 0):,} copies, "
      f"{groups} group(s)")
"""


def run(data: Path | None) -> None:  # noqa: ARG001 - it needs none
    """Print time and memory of the matching for growing tables, each in a process of its own."""
    for kind, sizes in (
        ("equal", (250_000, 500_000, 1_000_000)),
        ("near-equal", (12_500, 25_000, 50_000, 100_000)),
    ):
        for rows in sizes:
            subprocess.run([sys.executable, "-c", _CODE, kind, str(rows)], check=True)
