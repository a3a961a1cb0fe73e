"""What a table will suffer from under given settings, judged by its first rows."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from db_dedup.jobs.context import JobContext
from db_dedup.proposal import risk_of_too_little_text, risks_of_texts
from db_dedup.records import ScanReport, SourceRow

_SAMPLE_ROWS: Final = 1_000


def risks_of_table(context: JobContext, report: ScanReport) -> Iterator[str]:
    """Yield a sentence for each thing that makes wrong pairs likely, or right ones unlikely.

    Args:
        context: the table.
        report: what a scan found in it, exact duplicates and all.
    """
    watched, rows = context.watched, _first_rows(context)
    texts = {
        name: [row.values[i] for row in rows]
        for i, (name, column) in enumerate(watched.columns.items())
        if column.kind == "text"
    }
    yield from risks_of_texts(texts, leaves_frames_out=watched.rule.frames)
    yield from risk_of_too_little_text(report.too_little_text, report.rows)


def _first_rows(context: JobContext) -> list[SourceRow]:
    """Return the first rows by key: a stream that is left early is read to its end on MySQL."""
    source = context.source
    return next(source.read_keyset_pages(partial(source.snapshot, context.source_engine), _SAMPLE_ROWS), [])
