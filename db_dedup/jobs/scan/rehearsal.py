"""A full scan that writes nothing: for the preview of a scan, and for `verify`."""

import time
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.candidates.blocks import BLOCK_SHIFTS
from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.garbage import collecting_seldom
from db_dedup.jobs.scan.frozen_frames import FrozenFrames
from db_dedup.jobs.scan.reading import TableReading, nothing_stored
from db_dedup.jobs.scan.report import report_of
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.jobs.scan.sketch_index import wanted_sketches
from db_dedup.records import HotBlock, ScanReport
from db_dedup.records.fingerprints import DigestPair

_BLOCK_MASK = np.uint64(0xFFFF)


@dataclass(frozen=True)
class Rehearsal:
    """The answer that a scan would give now, and what it cost.

    Attributes:
        sketch_entries: rows of the index of sketches that the answer needs.
    """

    scanned: ScannedTable
    report: ScanReport
    matching_seconds: float
    sketch_entries: int


@collecting_seldom()
def rehearse(
    context: JobContext,
    frozen: FrozenFrames,
    rejected: Collection[DigestPair] = (),
    snapshot: Connection | None = None,
) -> Rehearsal:
    """Read every row, segment every text, find every duplicate; write nothing.

    Args:
        context: the table; our own tables are not read.
        frozen: the list of frames.
        rejected: pairs of texts that people have labelled as no duplicates.
        snapshot: to read the rows through; None for a new one.
    """
    started = time.monotonic()
    context = replace(context, frames=frozen.frames)
    with TableReading(context, snapshot) as reading:
        for _ in reading.pages(nothing_stored):
            pass
        read = time.monotonic()
        scanned = reading.match(rejected)
        end = time.monotonic()
        report = report_of(context, reading, scanned, frozen, end - started)
        places = scanned.table.sketch_places[wanted_sketches(scanned.table, scanned.matches.copy_of)]
        entries = int(scanned.table.sketches.counts[places].sum())
    return Rehearsal(scanned, report, round(end - read, 3), entries)


def hottest_blocks(scanned: ScannedTable, count: int) -> tuple[HotBlock, ...]:
    """Return the block values that most rows share; exact duplicates count once."""
    table, is_duplicate = scanned.table, scanned.matches.copy_of != NO_ROW
    values = table.fingerprints[table.has_fingerprint & ~is_duplicate]
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
