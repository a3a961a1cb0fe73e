"""Rows and their features as columns of Arrow: arrays of numbers as bytes, one value for each row."""

from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from db_dedup.flow._arrays import starts_of
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import SECTIONS, Details
from db_dedup.flow.pipeline import FingerprintedRows

_Scalar = TypeVar("_Scalar", bound=np.generic)

WIDTH: Final = 8
"""Bytes of each number."""

COMPARED: Final = "fingerprint long, hashes binary, weights binary, detail_counts binary, details binary"
"""What a row is compared by, as Spark declares it; with the digest, the sketch and the number it is whole."""


_ARROW_TYPES: Final = {
    "binary": pa.binary(), "boolean": pa.bool_(), "byte": pa.int8(), "double": pa.float64(),
    "int": pa.int32(), "long": pa.int64(), "short": pa.int16(), "string": pa.string(),
}  # fmt: skip


def arrow_types(declared: str) -> dict[str, pa.DataType]:
    """Return name -> type of some columns, given as Spark declares them: "name type, name type"."""
    return {name: _ARROW_TYPES[kind] for name, kind in (column.split() for column in declared.split(", "))}


def ragged(starts: NDArray[np.int64], values: NDArray[Any]) -> pa.Array:
    """Return each row's slice of some numbers of eight bytes, as bytes.

    Args:
        starts: int64[n + 1], row i owns the slice starts[i]:starts[i + 1].
        values: the numbers.
    """
    offsets = ((starts - starts[0]) * WIDTH).astype(np.int32)
    own = np.ascontiguousarray(values[starts[0] : starts[-1]])
    return pa.Array.from_buffers(
        pa.binary(), starts.size - 1, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(own.tobytes())]
    )


def numbers_of(
    column: pa.ChunkedArray, kind: type[_Scalar], order: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[_Scalar]]:
    """Return (int64[n + 1] starts, values) of a column that `ragged` made; a row without a value has none.

    Args:
        column: of n rows.
        kind: of the numbers.
        order: int64[n], the places of the rows in the order to return them; None for that of the column.
    """
    values = [value or b"" for value in column.to_pylist()]
    if order is not None:
        values = [values[place] for place in order.tolist()]
    starts = np.cumsum([0, *(len(value) // WIDTH for value in values)]).astype(np.int64)
    # A writable array: for a read-only one numba would compile every kernel again.
    return starts, np.frombuffer(bytearray().join(values), kind)


def feature_columns(done: FingerprintedRows, *, with_weights: bool) -> dict[str, pa.Array]:
    """Return what the rows are compared by; weights are empty where the measure has no use for them."""
    features, details = done.features, done.details
    count = len(done.digests)
    no_weights = np.zeros(count + 1, np.int64), np.empty(0, np.int64)
    weights = (features.starts, features.weights) if with_weights else no_weights
    section_counts = details.counts if details.counts.size else np.zeros(count * SECTIONS, np.int64)
    row_starts = starts_of(section_counts)[::SECTIONS]
    return {
        "fingerprint": pa.array(done.fingerprints.view(np.int64), mask=~done.has_fingerprint),
        "hashes": ragged(features.starts, features.hashes),
        "weights": ragged(*weights),
        "detail_counts": ragged(np.arange(count + 1) * SECTIONS, section_counts),
        "details": ragged(row_starts, details.values),
    }


def compared_rows(table: pa.Table) -> tuple[NDArray[np.int32], ComparedRows]:
    """Return (int32[n] ascending numbers, the rows in this order), the rows with a fingerprint.

    A number that comes twice, as a row that was read twice has it, counts once.
    """
    all_numbers = table.column("number").to_numpy().astype(np.int32)
    numbers, firsts = np.unique(all_numbers, return_index=True)
    is_first = np.zeros(all_numbers.size, np.bool_)
    is_first[firsts] = True
    # Filtered chunk by chunk: `take` would first join the chunks of a column, and fail beyond 2 GiB.
    table = table.filter(pa.array(is_first))
    order = np.argsort(all_numbers[is_first])
    starts, hashes = numbers_of(table.column("hashes"), np.uint64, order)
    _, weights = numbers_of(table.column("weights"), np.int64, order)
    _, detail_counts = numbers_of(table.column("detail_counts"), np.int64, order)
    _, details = numbers_of(table.column("details"), np.uint64, order)
    _, digests = numbers_of(table.column("digest"), np.uint64, order)
    sketches = Sketches(*numbers_of(table.column("sketch"), np.uint64, order))
    places = np.arange(numbers.size)
    rows = ComparedRows(
        np.array(table.column("fingerprint").to_numpy(), np.int64)[order].view(np.uint64),
        np.ones(numbers.size, np.bool_),
        digests.reshape(-1, 2),
        np.array(table.column("within").to_numpy(), np.int32)[order],
        Features(starts, hashes, weights),
        Details(starts_of(detail_counts), details),
        places,
        sketches,
        places,
    )
    return numbers, rows
