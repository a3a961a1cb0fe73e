"""Compile the kernels of incremental processing before the lock of the table is taken.

On a fresh machine this takes half a minute. With the lock held, every writer of an SQLite database would wait
as long.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from db_dedup.config import WatchedTable
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex
from db_dedup.flow.candidates.sketches import sharing_pairs
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import match_table, pairs_between
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.progress import NullProgress

_IN_LETTERS: Final = "The street lamp at the gate has been broken for months, please repair it soon."
_TEXT: Final = "小区门口的路灯坏了三个月，晚上出行很不安全，希望有关部门尽快派人来修好它们。"


def make_ready(watched: WatchedTable, fingerprinter: Fingerprinter) -> None:
    """Run two made-up rows through every kernel, so that numba compiles them before a lock is taken."""
    rows = [tuple(f"{_TEXT}{end}" for _ in watched.columns) for end in ("急", "谢谢")]
    fingerprinter.fingerprint([tuple(_IN_LETTERS for _ in watched.columns)])
    done = fingerprinter.fingerprint(rows)
    index = FingerprintIndex(np.arange(2), done.fingerprints)
    index.put({2: 0})
    index.find_near(done.fingerprints, watched.rule.radius)
    places = np.arange(2)
    sketches = done.sketches.take(places)
    sharing_pairs(sketches, sketches.values, np.repeat(places, sketches.counts), sketches.counts)
    table = replace(done.compared([None, None]), digests=np.zeros((2, 2), np.uint64))
    rule = Rule(watched.setting)
    left, right = places[:1].astype(np.int32), places[1:].astype(np.int32)
    rule.confirm(table, left, right)
    pairs_between(table, rule, left, right)
    match_table(table, rule, watched.abridge_above, NullProgress())
