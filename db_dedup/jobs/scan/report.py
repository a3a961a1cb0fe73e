"""The report of a scan."""

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.blocks import BLOCK_SHIFTS
from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.frozen_frames import FrozenFrames
from db_dedup.jobs.scan.reading import TableReading
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.records import HotBlock, ScanReport

_HOTTEST = 3
_BLOCK_VALUES = 1 << 16


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
    has_blocks = scanned.table.has_fingerprint & (matches.copy_of == NO_ROW)
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
        hot_blocks=hot_blocks(scanned.table.fingerprints[has_blocks]),
        engine=context.matching_engine.name,
    )


def hot_blocks(fingerprints: NDArray[np.uint64]) -> tuple[HotBlock, ...]:
    """Return the block values that most of some fingerprints share, the most frequent first; at most three.

    Args:
        fingerprints: uint64[n], without those of exact duplicates, which have no blocks.
    """
    found: list[HotBlock] = []
    for block, shift in enumerate(BLOCK_SHIFTS, 1):
        values = (fingerprints >> np.uint64(shift)) & np.uint64(_BLOCK_VALUES - 1)
        rows = np.bincount(values.astype(np.int64), minlength=_BLOCK_VALUES)
        shared = np.flatnonzero(rows > 1)
        hottest = shared[np.argsort(-rows[shared], kind="stable")[:_HOTTEST]]
        found += [HotBlock(block, int(value), int(rows[value])) for value in hottest]
    return tuple(sorted(found, key=lambda hot: (-hot.rows, hot.block, hot.value))[:_HOTTEST])
