"""A full scan that writes nothing: for the dry run, the preview and `verify`."""

import time
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.engines.embedded.matching import NO_ROW
from db_dedup.engines.embedded.table_scan import ScannedTable
from db_dedup.flow.candidates import BLOCK_SHIFTS
from db_dedup.jobs.answer import wanted_bands
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.full_scan import report_of
from db_dedup.jobs.reading import TableReading, nothing_stored
from db_dedup.records import HotBlock, ScanReport
from db_dedup.store.verdicts import DigestPair

_BLOCK_MASK = np.uint64(0xFFFF)


@dataclass(frozen=True)
class Rehearsal:
    """The answer that a scan would give now, and what it cost.

    Attributes:
        sketch_entries: rows of the band table that the answer takes.
    """

    scanned: ScannedTable
    report: ScanReport
    matching_seconds: float
    sketch_entries: int


def rehearse(
    context: JobContext, rejected: Collection[DigestPair] = (), snapshot: Connection | None = None
) -> Rehearsal:
    """Read every row, segment every text, find every duplicate; nothing of it is kept.

    Args:
        context: the table; of our own tables nothing is read.
        rejected: pairs of texts that people have said to be no duplicates.
        snapshot: read through this one, or else through one of its own.
    """
    started = time.monotonic()
    with TableReading(context, snapshot) as reading:
        for _ in reading.pages(nothing_stored):
            pass
        read = time.monotonic()
        scanned = reading.match(rejected)
        end = time.monotonic()
        report = report_of(context, reading, scanned, end - started)
        places = scanned.table.sketch_places[wanted_bands(scanned)]
        entries = int(scanned.table.sketches.counts[places].sum())
    return Rehearsal(scanned, report, round(end - read, 3), entries)


def hottest_blocks(scanned: ScannedTable, count: int) -> tuple[HotBlock, ...]:
    """The block values that most rows share, copies aside."""
    table, is_copy = scanned.table, scanned.matches.copy_of != NO_ROW
    values = table.fingerprints[table.has_fingerprint & ~is_copy]
    found = [
        HotBlock(block, value, rows)
        for block, shift in enumerate(BLOCK_SHIFTS, 1)
        for value, rows in _most_frequent((values >> np.uint64(shift)) & _BLOCK_MASK, count)
    ]
    return tuple(sorted(found, key=lambda hot: -hot.rows)[:count])


def _most_frequent(values: NDArray[np.uint64], count: int) -> list[tuple[int, int]]:
    sizes = np.bincount(values.astype(np.int64), minlength=1)
    hottest = np.argsort(sizes)[::-1][:count]
    return [(int(value), int(sizes[value])) for value in hottest if sizes[value]]
