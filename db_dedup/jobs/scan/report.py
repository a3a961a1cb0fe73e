"""The report of a scan."""

import numpy as np

from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.frozen_frames import FrozenFrames
from db_dedup.jobs.scan.reading import TableReading
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.records import HotBlock, ScanReport
from db_dedup.records.fingerprints import BLOCK_BITS, BLOCK_SHIFTS

_HOT_BLOCKS = 3
_BLOCK_VALUES = 1 << BLOCK_BITS


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
        hot_blocks=hot_blocks(scanned, _HOT_BLOCKS),
        engine=context.matching_engine.name,
    )


def hot_blocks(scanned: ScannedTable, most: int) -> tuple[HotBlock, ...]:
    """Return the block values that most rows share, the most frequent first; at most `most` of them.

    Exact duplicates are not counted, because they have no blocks.
    """
    has_blocks = scanned.table.has_fingerprint & (scanned.matches.copy_of == NO_ROW)
    fingerprints = scanned.table.fingerprints[has_blocks]
    found: list[HotBlock] = []
    for block, shift in enumerate(BLOCK_SHIFTS, 1):
        values = (fingerprints >> np.uint64(shift)) & np.uint64(_BLOCK_VALUES - 1)
        rows = np.bincount(values.astype(np.int64), minlength=_BLOCK_VALUES)
        shared = np.flatnonzero(rows > 1)
        hottest = shared[np.argsort(-rows[shared], kind="stable")[:most]]
        found += [HotBlock(block, int(value), int(rows[value])) for value in hottest]
    return tuple(sorted(found, key=lambda hot: (-hot.rows, hot.block, hot.value))[:most])
