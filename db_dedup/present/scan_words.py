"""What a scan found, what it changed and what it would cost, in words."""

from collections.abc import Iterator
from typing import Final

from db_dedup.plurals import counted
from db_dedup.present.frame_words import drift_lines, frame_lines
from db_dedup.records import PastScan, ScanPreview, ScanReport
from db_dedup.translation import Phrase, tr

_SUSPICIOUS_ROWS: Final = 20
"""A smaller group that holds most rows may be right: the table is small."""

_LARGE_GROUP: Final = (
    "one group holds {largest:,} of the {rows:,} rows: most of what is compared is the same in all rows, "
    "such as a form, a category or an official answer; compare only the columns that tell one matter from "
    "another; if all texts follow one template and differ in a few words or numbers, raise `threshold` to "
    "0.9 or more"
)
_TAKES: Final = (
    "a scan takes about {seconds:.1f} s: {reading:.1f} s to read and segment, {matching:.1f} s to match, "
    "about {writing:.1f} s to write"
)
_TAKES_LESS: Final = (
    "a scan takes about {seconds:.1f} s: {reading:.1f} s to read and segment, {matching:.1f} s to match, "
    "about {writing:.1f} s to write; it does not segment again what has not changed"
)
_PARTS: Final = (
    "of these {reading:.1f} s to read and fingerprint, {matching:.1f} s to match, {writing:.1f} s to write, "
    "{other:.1f} s for the rest"
)
_WRITES: Final = "it writes {fingerprints}, {entries} and {pairs}: about {megabytes:,.1f} MB of disk"
_WRITES_BESIDE: Final = (
    "it writes {fingerprints}, {entries} and {pairs}: about {megabytes:,.1f} MB of disk, "
    "beside the stored answer, which is then removed"
)


def report_lines(report: ScanReport) -> Iterator[str]:
    """Describe what a scan found, a sentence a line."""
    yield tr(
        "{table}: {rows} in {seconds:.1f} s, {too_little_text:,} with too little text to judge",
        table=report.table,
        rows=counted(report.rows, "row"),
        seconds=report.seconds,
        too_little_text=report.too_little_text,
    )
    if report.parts is not None:
        yield tr(_PARTS, **report.parts)
    if report.segmented < report.rows:
        yield tr(
            "{texts} segmented; the others had not changed",
            texts=counted(report.segmented, "text was", "texts were"),
        )
    yield tr(
        "{groups} with {rows}: {pairs} and {copies}",
        groups=counted(report.groups, "duplicate group"),
        rows=counted(report.grouped_rows, "row"),
        pairs=counted(report.pairs, "pair"),
        copies=counted(report.copies, "exact duplicate"),
    )
    yield from without_key_lines(report.rows_without_key)
    if report.frames is not None:
        yield from frame_lines(report.frames)
        yield from drift_lines(report.table, report.frames, is_written=report.pairs_gained is not None)
    for risk in risk_of_large_group(report):
        yield tr("warning: {risk}", risk=risk)


def risk_of_large_group(report: ScanReport) -> Iterator[str]:
    """Yield a sentence if one group holds more than half of all rows."""
    if report.largest_group >= _SUSPICIOUS_ROWS and 2 * report.largest_group > report.rows:
        yield Phrase(_LARGE_GROUP, largest=report.largest_group, rows=report.rows)


def without_key_lines(rows: int) -> Iterator[str]:
    """Say how many rows were left out because a part of their key is NULL; nothing if there are none."""
    if rows:
        yield tr("{rows} no key (NULL), left out", rows=counted(rows, "row has", "rows have"))


def changes_of(scan: ScanReport | PastScan) -> str:
    """Describe how a scan changed the stored answer."""
    gained, lost, groups = scan.pairs_gained or 0, scan.pairs_lost or 0, scan.groups_changed or 0
    if not (gained or lost or groups):
        return tr("nothing has changed")
    return tr(
        "{pairs} gained, {lost:,} lost, {groups} changed",
        pairs=counted(gained, "pair"),
        lost=lost,
        groups=counted(groups, "group"),
    )


def cost_lines(found: ScanPreview) -> Iterator[str]:
    """Describe what a scan would cost: seconds, disk, locks."""
    costs, matching = found.costs, found.matching_seconds
    reading = found.report.seconds - matching
    is_beside = found.is_new_recipe and found.differences is not None
    yield tr(
        _TAKES if found.is_new_recipe else _TAKES_LESS,
        seconds=costs.seconds,
        reading=reading,
        matching=matching,
        writing=costs.writing_seconds,
    )
    yield tr(
        _WRITES_BESIDE if is_beside else _WRITES,
        fingerprints=counted(costs.fingerprints, "fingerprint"),
        entries=counted(costs.entries, "sketch index entry", "sketch index entries"),
        pairs=counted(costs.pairs, "pair"),
        megabytes=costs.bytes / 1e6,
    )
    for sentence in costs.locks:
        yield tr("locks: {sentence}", sentence=sentence)
