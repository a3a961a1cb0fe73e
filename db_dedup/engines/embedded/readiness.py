"""Everything that a first increment would have to compile, compiled before it.

On a fresh machine that takes half a minute, in which a worker would hold its lock, and on SQLite every writer
of the database would wait.
"""

from typing import Final

import numpy as np

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.matching import Table, match_table
from db_dedup.engines.embedded.table_scan import MEASURE_OF, match_rule
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.flow.fingerprint_index import FingerprintIndex
from db_dedup.flow.similarity import similarities
from db_dedup.flow.sketches import meetings
from db_dedup.progress import NullProgress

_TEXT: Final = "小区门口的路灯坏了三个月，晚上出行很不安全，希望有关部门尽快派人来修好它们。"


def make_ready(watched: WatchedTable, fingerprinter: Fingerprinter) -> None:
    """Run two made-up rows through every kernel, so that numba compiles them before a lock is taken."""
    rows = [tuple(f"{_TEXT}{end}" for _ in watched.columns) for end in ("急", "谢谢")]
    done = fingerprinter.fingerprint(rows)
    index = FingerprintIndex(np.arange(2), done.fingerprints)
    index.put({2: 0})
    index.find_near(done.fingerprints, watched.rule.radius)
    features, places = done.features, np.arange(2)
    measure = MEASURE_OF[watched.rule.similarity]
    if measure is not None:
        left, right = places[:1].astype(np.int32), places[1:].astype(np.int32)
        similarities(measure, features.starts, features.hashes, features.weights, left, right)
    sketches = done.sketches.take(places)
    meetings(sketches, sketches.values, np.repeat(places, sketches.counts), sketches.counts)
    table = Table(
        done.fingerprints,
        done.has_fingerprint,
        np.zeros((2, 2), np.uint64),
        np.zeros(2, np.int32),
        features,
        places,
        done.sketches,
        places,
    )
    match_table(table, match_rule(watched.rule, watched.abridge_above), NullProgress())
