"""What is stored of fingerprinted rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from db_dedup.flow.compare.feature_sets import feature_sets
from db_dedup.flow.pipeline import FingerprintedRows
from db_dedup.flow.rows.order import Receipt, receipt
from db_dedup.records import Family, SourceRow
from db_dedup.records.fingerprints import RowFingerprint
from db_dedup.records.forms import UNKNOWN_FORM


def row_fingerprints(
    page: Sequence[SourceRow],
    done: FingerprintedRows,
    sizes: Sequence[int | None] | None = None,
    *,
    with_sets: bool = False,
) -> list[RowFingerprint]:
    """Return what is to be stored of these rows.

    Args:
        page: the rows.
        done: what was computed of them.
        sizes: the size of each row's sketch, None where it is not to be stored; None for no sizes.
        with_sets: also return the sets of features; if `sizes` is given, only those of rows with a size.
    """
    fingerprints: list[int | None] = done.fingerprints.tolist()
    for row in np.flatnonzero(~done.has_fingerprint).tolist():
        fingerprints[row] = None
    sets: Sequence[bytes | None] = [None] * len(page)
    if with_sets:
        sets = sets_of(done)
        if sizes is not None:
            sets = [each if size is not None else None for each, size in zip(sets, sizes, strict=True)]
    columns: tuple[Sequence[Any], ...] = (
        [row.row_key for row in page],
        [row.order_value for row in page],
        fingerprints,
        done.digests,
        [None if form == UNKNOWN_FORM else form for form in done.forms.tolist()],
        [None] * len(page) if sizes is None else sizes,
        sets,
    )
    return list(map(RowFingerprint._make, zip(*columns, strict=True)))


def sets_of(done: FingerprintedRows) -> list[bytes | None]:
    """Return the set of each row's features, as `flow.compare.feature_sets` packs them."""
    counts = done.sketches.counts
    return feature_sets(done.features, done.details, counts, of_grams=done.compares_grams)


def sketch_sizes(
    page: Sequence[SourceRow], done: FingerprintedRows, families: Sequence[Family]
) -> list[int | None]:
    """Return the size of each row's sketch; None without a fingerprint, and for an exact duplicate.

    Args:
        page: the rows.
        done: what was computed of them.
        families: of the columns of their key. Of equal rows the one that was received first has the size, as
            it is the only one that may become the canonical row.
    """
    first: dict[bytes, int] = {}
    for row in np.flatnonzero(done.has_fingerprint).tolist():
        other = first.setdefault(done.digests[row], row)
        if other != row and _received(page[row], families) < _received(page[other], families):
            first[done.digests[row]] = row
    sizes: list[int | None] = [None] * len(page)
    counts = done.sketches.counts.tolist()
    for row in first.values():
        sizes[row] = counts[row]
    return sizes


def _received(row: SourceRow, families: Sequence[Family]) -> Receipt:
    return receipt(row.order_value, row.row_key, families)
