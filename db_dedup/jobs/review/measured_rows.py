"""All rows of a table in memory, for label questions and calibration, which compare more than a scan does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from db_dedup.flow.matching.measured_table import MeasuredRows, MeasuredTable
from db_dedup.flow.usable_cores import usable_cores
from db_dedup.jobs.context import JobContext


@contextmanager
def read_measured_rows(context: JobContext) -> Iterator[MeasuredRows]:
    """Read and fingerprint every row of the table; the rows can be used until the block ends."""
    # Measures other than the present one are tried, too, and they may need the long grams.
    recipe = replace(context.recipe, long_grams=context.watched.rule.long_grams)
    watched = context.watched
    kinds_by = watched.setting if watched.exclude_kinds else None
    with MeasuredTable(recipe, kinds_by, watched.rule.short_threshold, usable_cores()) as wide:
        context.progress.start("fingerprints", None)
        for page in context.source.pages(context.source_engine):
            wide.add_page(page)
            context.progress.advance(len(page))
        context.progress.finish()
        yield wide.rows()
