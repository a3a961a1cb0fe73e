"""A full scan that writes nothing: for the preview of a scan, and for `verify`."""

import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from db_dedup.jobs.context import JobContext
from db_dedup.jobs.garbage import collecting_seldom
from db_dedup.jobs.scan.frozen_frames import FrozenFrames
from db_dedup.jobs.scan.reading import TableReading, nothing_stored
from db_dedup.jobs.scan.report import report_of
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.jobs.scan.sketch_index import wanted_sketches
from db_dedup.records import ScanReport
from db_dedup.records.fingerprints import DigestPair


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
