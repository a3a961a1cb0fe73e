"""Rows as columns of Arrow become the rows that are compared. Spark itself is not needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from db_dedup.engines.spark.columns import compared_rows, ragged
from db_dedup.flow.features.details import SECTIONS

_MEGABYTES = 1 << 20


def batch(numbers: Sequence[int], hashes: pa.Array) -> pa.RecordBatch:
    """Rows whose fingerprint, digest and `within` are made of their numbers."""
    own = np.array(numbers, np.int64)
    none = ragged(np.zeros(own.size + 1, np.int64), np.empty(0, np.int64))
    return pa.RecordBatch.from_pydict(
        {
            "number": pa.array(numbers, pa.int32()),
            "within": pa.array(numbers, pa.int32()),
            "digest": ragged(2 * np.arange(own.size + 1), np.repeat(own, 2)),
            "sketch": none,
            "fingerprint": own,
            "hashes": hashes,
            "weights": none,
            "detail_counts": ragged(
                SECTIONS * np.arange(own.size + 1), np.zeros(SECTIONS * own.size, np.int64)
            ),
            "details": none,
        }
    )


def test_rows_are_in_the_order_of_their_numbers_and_each_once() -> None:
    parts = [
        batch(numbers, ragged(np.arange(len(numbers) + 1), np.array(numbers, np.int64)))
        for numbers in ([7, 3, 9], [3, 1])
    ]
    numbers, rows = compared_rows(pa.Table.from_batches(parts))
    assert numbers.tolist() == [1, 3, 7, 9]
    assert rows.fingerprints.tolist() == [1, 3, 7, 9]
    assert rows.digests.tolist() == [[1, 1], [3, 3], [7, 7], [9, 9]]
    assert rows.within.tolist() == [1, 3, 7, 9]
    assert rows.features.hashes.tolist() == [1, 3, 7, 9]


def test_a_group_may_have_more_bytes_than_a_column_in_one_piece() -> None:
    """It comes in many batches, of which the columns have more than 2 GiB together."""
    large = batch([5], pa.array([bytes(32 * _MEGABYTES)], pa.binary()))
    numbers, rows = compared_rows(pa.Table.from_batches([large] * 70))
    assert numbers.tolist() == [5]
    assert rows.features.hashes.size == 32 * _MEGABYTES // 8
