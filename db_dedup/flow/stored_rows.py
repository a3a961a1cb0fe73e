"""What is stored of fingerprinted rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from db_dedup.flow.compare.feature_sets import feature_sets
from db_dedup.flow.pipeline import FingerprintedRows
from db_dedup.records import SourceRow
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


def sketch_sizes(done: FingerprintedRows) -> list[int | None]:
    """Return the size of each row's sketch; None without a fingerprint, and for an exact duplicate."""
    sizes: list[int | None] = [None] * len(done.digests)
    rows = np.flatnonzero(done.has_fingerprint)[::-1].tolist()
    # Of equal digests the last one that is put there counts: the first row.
    first = dict(zip([done.digests[row] for row in rows], rows, strict=True))
    counts = done.sketches.counts.tolist()
    for row in first.values():
        sizes[row] = counts[row]
    return sizes
