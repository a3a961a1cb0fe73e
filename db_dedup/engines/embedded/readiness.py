"""Compile the kernels of incremental processing before the lock of the table is taken.

On a fresh machine this takes half a minute. With the lock held, every writer of an SQLite database would wait
as long.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex
from db_dedup.flow.candidates.one_sketch import CountedRows
from db_dedup.flow.candidates.postings import Postings, entries_in, sharing_pairs
from db_dedup.flow.candidates.segments import (
    Entries,
    PackedParts,
    find_postings,
    hashes_of,
    narrowed,
    pack,
    sort_entries,
)
from db_dedup.flow.candidates.sketch_sizes import SizeTable
from db_dedup.flow.candidates.sketches import Sketches, share_enough_each
from db_dedup.flow.compare.feature_sets import AskedFeatures, PackedSets, may_be_alike
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import match_table, pairs_between
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.stored_rows import sets_of
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
    left, right = places[:1].astype(np.int32), places[1:].astype(np.int32)
    _find_sharing(sketches, places)
    asked = AskedFeatures.of(done.features, done.details, places, Rule(watched.setting).numbers)
    may_be_alike(asked, places, places, PackedSets.of(sets_of(done)))
    share_enough_each(sketches, left, right)
    table = replace(done.compared([None, None]), digests=np.zeros((2, 2), np.uint64))
    rule = Rule(watched.setting)
    rule.confirm(table, left, right)
    pairs_between(table, rule, left, right)
    match_table(table, rule, watched.abridge_above, NullProgress())


def _find_sharing(sketches: Sketches, places: NDArray[np.int64]) -> None:
    """Look the rows up in an index in two levels that holds these rows alone."""
    hashes, rows = narrowed(sketches), np.repeat(places, sketches.counts)
    sharing_pairs(hashes, Postings.of(hashes.values, rows), hashes.counts)
    entries = sort_entries(Entries(hashes_of(sketches.values), rows))
    parts = PackedParts.of([part.packed for part in pack(entries, 1)])
    are_changed = np.zeros(entries.ids.size, np.bool_)
    none = entries.hashes[:0]
    CountedRows.of(hashes.values.size, Postings.of(*entries), none, are_changed, SizeTable.of({}))
    found = find_postings(parts, np.unique(entries.hashes), 0, 1, entries.ids.size)
    entries_in(found.narrowed(), entries.hashes, entries.ids)
