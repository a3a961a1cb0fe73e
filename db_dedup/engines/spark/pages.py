"""Fingerprint pages of rows on the executors: the same steps, and the same code, as on one machine."""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from db_dedup.engines.spark.columns import COMPARED, arrow_types, feature_columns, ragged
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.rows.source_rows import RowTexts
from db_dedup.flow.stored_rows import row_fingerprints, sketch_sizes
from db_dedup.records import Family, SourceRow
from db_dedup.records.pages import cut_pages
from db_dedup.records.read_size import length_of
from db_dedup.records.recipe import Recipe

STORED: Final = (
    "row_key string, order_value string, form byte, framed boolean, size short, feature_set binary"
)
ROW: Final = f"{STORED}, within string, digest binary, sketch binary, {COMPARED}"
"""What is computed of a row, as Spark declares it. A row without a key has nothing but the missing key."""

PAGE: Final = "page binary"
"""A page of rows as one value."""

_PAGE_ROWS: Final = 2_000


class PageSteps(NamedTuple):
    """How rows become fingerprints, sent to the executors.

    Attributes:
        recipe: pickled, since the fingerprinter that it makes is kept by it.
        texts: turns the texts of the query into those of the flow.
        has_order: the query has an order column.
        key_families: of the columns of the key.
        with_sizes: give the sizes of sketches; of exact duplicates of a page only one has it.
        with_sets: give the sets of features.
        with_weights: the measure needs the weights of the features.
    """

    recipe: bytes
    texts: RowTexts
    has_order: bool
    key_families: Sequence[Family]
    with_sizes: bool
    with_sets: bool
    with_weights: bool


def pickled(recipe: Recipe) -> bytes:
    """Return a recipe as `PageSteps` takes it."""
    return pickle.dumps(recipe, pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=1)
def _fingerprinter(recipe: bytes) -> Fingerprinter:
    """Return the fingerprinter, which a Python process of an executor keeps for all its tasks."""
    return Fingerprinter(pickle.loads(recipe))  # noqa: S301 - the driver of this scan sent it


def fingerprint_batches(steps: PageSteps, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn rows of the query of texts into rows of `ROW`."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        if not steps.has_order:
            columns.insert(1, [None] * batch.num_rows)
        raw = list(zip(*columns, strict=True))
        rows = steps.texts.rows([row for row in raw if row[0] is not None])
        yield from (_fingerprinted(steps, page) for page in cut_pages(rows, length_of, _PAGE_ROWS))
        missing = sum(row[0] is None for row in raw)
        if missing:
            yield _without_keys(missing)


def _fingerprinted(steps: PageSteps, page: list[SourceRow]) -> pa.RecordBatch:
    done = _fingerprinter(steps.recipe).fingerprint(
        [row.values for row in page], [row.within for row in page]
    )
    sizes = sketch_sizes(page, done, steps.key_families) if steps.with_sizes else None
    stored = row_fingerprints(page, done, sizes, with_sets=steps.with_sets)
    columns: dict[str, Any] = {
        "row_key": pa.array([row.row_key for row in stored], pa.string()),
        "order_value": pa.array([row.order_value for row in stored], pa.string()),
        "form": pa.array([row.form for row in stored], pa.int8()),
        "framed": pa.array(done.framed),
        "size": pa.array([row.sketch_size for row in stored], pa.int16()),
        "feature_set": pa.array([row.feature_set for row in stored], pa.binary()),
        "within": pa.array([row.within for row in page], pa.string()),
        "digest": pa.array(done.digests, pa.binary()),
        "sketch": ragged(done.sketches.starts, done.sketches.values),
        **feature_columns(done, with_weights=steps.with_weights),
    }
    return pa.RecordBatch.from_pydict(columns)


def _without_keys(count: int) -> pa.RecordBatch:
    """Return rows with NULL in their key, which are only counted."""
    empty = {name: pa.nulls(count, kind) for name, kind in arrow_types(ROW).items()}
    return pa.RecordBatch.from_pydict(empty)


def packed_pages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn each batch of rows into one value, which the driver reads faster than its rows one by one."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"page": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def unpacked_page(page: bytes) -> pa.Table:
    """Return the rows of one value of `packed_pages`."""
    with pa.ipc.open_stream(page) as reader:
        return reader.read_all()


def one_row_of_each_number(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep one row of each number: exact duplicates have the same number, and equal features."""
    seen: set[int] = set()
    for batch in batches:
        kept = []
        for place, number in enumerate(batch.column("number").to_pylist()):
            if number not in seen:
                seen.add(number)
                kept.append(place)
        if kept:
            yield batch.take(pa.array(np.array(kept, np.int64)))
