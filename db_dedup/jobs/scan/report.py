"""The report of a scan."""

import numpy as np

from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.frozen_frames import FrozenFrames
from db_dedup.jobs.scan.reading import TableReading
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.records import ScanReport


def report_of(
    context: JobContext,
    reading: TableReading,
    scanned: ScannedTable,
    frozen: FrozenFrames,
    seconds: float,
) -> ScanReport:
    """Count what a scan found.

    Args:
        context: the table.
        reading: has read it.
        scanned: the answer.
        frozen: the list of frames.
        seconds: how long it took.
    """
    matches = scanned.matches
    grouped = matches.group_of[matches.group_of >= 0]
    sizes = np.unique_counts(grouped).counts
    fingerprints = int(np.count_nonzero(scanned.table.has_fingerprint))
    return ScanReport(
        table=context.watched.name,
        rows=len(scanned.row_keys),
        fingerprints=fingerprints,
        too_little_text=len(scanned.row_keys) - fingerprints,
        segmented=reading.scan.segmented_count,
        copies=int(np.count_nonzero(matches.copy_of >= 0)),
        pairs=int(matches.pairs.left.size),
        groups=int(sizes.size),
        grouped_rows=int(grouped.size),
        largest_group=int(sizes.max(initial=0)),
        rows_without_key=context.source.rows_without_key,
        seconds=round(seconds, 3),
        frames=frozen.report(reading.scan.framed_count) if context.watched.rule.frames else None,
    )
