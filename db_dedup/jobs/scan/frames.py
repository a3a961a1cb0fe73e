"""Measure the frames and the common 3-grams of a table on a sample of its rows, before its recipe is built.

The hash of a row's key decides whether the row is in the sample. So two scans of the same rows measure the
same sample, whatever the order in which the database gives them, and in a table that grows a sample changes
slowly. All keys are read, without their texts; then the rows of the sample are read by key.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Final

import numpy as np
from cityhash import CityHash64
from sqlalchemy import Connection

from db_dedup.errors import RowKeyError
from db_dedup.flow.candidates.common_grams import measure_common_grams
from db_dedup.flow.rows.digest import digest_columns
from db_dedup.flow.text import frames as frame_texts
from db_dedup.flow.text.compared import compared_columns
from db_dedup.jobs.context import JobContext
from db_dedup.records import SourceRow
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.records.read_size import length_of
from db_dedup.store.frames import StoredFrames, require_frames
from db_dedup.store.watched_tables import StoredTable

SAMPLE_ROWS: Final = 4_000
"""The most rows of a sample."""
SAMPLE_CHARACTERS: Final = 16_000_000
"""A sample ends with the row that brings it to so many: rows may hold megabytes."""
_BROKEN_KEY: Final = (RowKeyError, UnicodeEncodeError)
"""The errors of a key that cannot be asked for. A sample passes over them: the pages of the scan have the
same row, and name the fault."""
_ABOVE_ALL_HASHES: Final = 1 << 64
DRIFT_SHARE: Final = 0.01
"""If a new list reads the texts of more of the sampled rows differently, it replaces the old one."""
DRIFT_CHARACTERS: Final = 8
"""A text is read differently if so many more of its characters are left out, or so many fewer. When a table
grows, set phrases of a few characters enter the list and leave it, which changes no pairs."""


@dataclass(frozen=True)
class FrameSample:
    """Rows of a table, each text once.

    Attributes:
        row_count: rows of the whole table.
        row_keys: n row keys.
        columns: column by column the n texts as they are compared.
        repeats: n numbers, how many of the rows that were read have these texts.
    """

    row_count: int
    row_keys: list[str]
    columns: list[list[str]]
    repeats: Sequence[int]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.row_keys)

    @property
    def is_enough(self) -> bool:
        """Whether frames can be measured on these rows."""
        return self.count >= frame_texts.LEAST_ROWS

    def differing_share(self, one: FrameList, other: FrameList) -> float:
        """Return the share of the rows that have a text which the two lists read differently."""
        if one.has_same_frames(other) or not self.count:
            return 0.0
        differs = np.zeros(self.count, np.bool_)
        lists = (frame_texts.without_frames(self.columns, frames) for frames in (one, other))
        for pair in zip(*lists, strict=True):
            left, right = (np.fromiter(map(len, texts), np.int64, self.count) for texts in pair)
            differs |= np.abs(left - right) >= DRIFT_CHARACTERS
        return float(np.count_nonzero(differs) / self.count)


def take_sample(context: JobContext, snapshot: Connection | None = None) -> FrameSample:
    """Read the sample of a table.

    Args:
        context: the table.
        snapshot: to read the rows through; None for new connections.
    """
    row_count, keys = _chosen_keys(context, snapshot)
    recipe = context.watched.recipe
    row_keys: list[str] = []
    texts: list[tuple[str, ...]] = []
    repeats: dict[bytes, int] = {}
    context.progress.start("rows of a sample", len(keys))
    for rows in _read_rows(context, snapshot, keys):
        columns = compared_columns(recipe.columns, recipe.normaliser, [row.values for row in rows])
        digests = digest_columns(columns, [row.within for row in rows])
        for row, digest, values in zip(rows, digests, zip(*columns, strict=True), strict=True):
            repeats[digest] = repeats.get(digest, 0) + 1
            if repeats[digest] == 1:
                row_keys.append(row.row_key)
                texts.append(values)
        context.progress.advance(len(rows))
    context.progress.finish()
    return FrameSample(
        row_count,
        row_keys,
        [[row[i] for row in texts] for i in range(len(recipe.columns))],
        list(repeats.values()),
    )


def measure(context: JobContext, sample: FrameSample, former: FrameList = NO_FRAMES) -> StoredFrames:
    """Return the frames and the common 3-grams of a sample; none if it has too few rows.

    Args:
        context: the table.
        sample: its sample.
        former: the list in use. It keeps its grams down to a lower share of the rows, so that lists do not
            change to and fro.
    """
    frames, watched = NO_FRAMES, context.watched
    columns = watched.recipe.columns
    if sample.is_enough and watched.rule.frames:
        frames = frame_texts.measure_frames(columns, sample.columns, former, repeats=sample.repeats)
    if sample.is_enough and watched.recipe.has_prefixes:
        common = measure_common_grams(columns, sample.columns, frames)
        frames = replace(frames, common_grams=common)
    return StoredFrames(frames, sample.row_count, sample.count)


def with_frames(context: JobContext, stored: StoredTable | None) -> JobContext:
    """Return the context with the list that its settings are compared by; nothing is written.

    It is the stored list if these are the settings of the recipe that serves, and measured otherwise.

    Raises:
        FrameListError: the stored list cannot be used.
    """
    if not context.watched.freezes_list:
        return context
    if stored is not None and stored.recipe_digest == context.watched.recipe_digest():
        with context.engine.connect() as connection:
            found = require_frames(connection, context.tables, stored)
    else:
        found = measure(context, take_sample(context))
    return context if found is None else replace(context, frames=found.frames)


def _chosen_keys(context: JobContext, snapshot: Connection | None) -> tuple[int, list[str]]:
    """Return (how many rows the table has, the row keys of the sample in the order of their hashes)."""
    source, row_count = context.source, 0
    keys = source.row_keys(context.source_engine) if snapshot is None else source.read_row_keys(snapshot)
    chosen: list[tuple[int, str]] = []
    highest = _ABOVE_ALL_HASHES
    context.progress.start("keys", None)
    for some in _up_to_broken(keys):
        row_count += len(some)
        hashes = [CityHash64(row_key.encode("utf-8", "surrogatepass")) for row_key in some]
        chosen += [pair for pair in zip(hashes, some, strict=True) if pair[0] <= highest]
        if len(chosen) >= SAMPLE_ROWS:
            chosen = nsmallest(SAMPLE_ROWS, chosen)
            highest = chosen[-1][0]
    context.progress.finish()
    return row_count, [row_key for _, row_key in nsmallest(SAMPLE_ROWS, chosen)]


def _up_to_broken(row_keys: Iterator[list[str]]) -> Iterator[list[str]]:
    with suppress(*_BROKEN_KEY):
        yield from row_keys


def _read_rows(
    context: JobContext, snapshot: Connection | None, row_keys: Sequence[str]
) -> Iterator[list[SourceRow]]:
    """Yield rows in batches, in the order of their keys here, until they have enough characters together."""
    characters = 0
    for batch in context.source.batches(row_keys):
        if characters >= SAMPLE_CHARACTERS:
            return
        try:
            with _rows_of(context, snapshot) as connection:
                found = {row.row_key: row for row in context.source.read_rows(connection, batch)}
        except _BROKEN_KEY:
            continue
        rows = [found[row_key] for row_key in batch if row_key in found]
        characters += sum(map(length_of, rows))
        if rows:
            yield rows


def _rows_of(context: JobContext, snapshot: Connection | None) -> AbstractContextManager[Connection]:
    return context.source_engine.connect() if snapshot is None else nullcontext(snapshot)
