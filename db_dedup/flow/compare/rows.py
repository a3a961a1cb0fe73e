"""Rows as the rule compares them."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.sketches import NO_SKETCHES, Sketches
from db_dedup.flow.compare.kernels import RowArrays
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import Details

NONE_REJECTED = np.empty(0, np.int64)
NO_PLACE: Final = -1
"""The place of a row without features, or without a sketch."""


@dataclass(frozen=True)
class ComparedRows:
    """n rows, numbered in the order they were received where that matters.

    Attributes:
        fingerprints: uint64[n].
        has_fingerprint: bool[n].
        digests: uint64[n, 2], the two halves of each digest; both are zero if the row has no feature.
        within: int32[n], equal where rows agree in the `within` columns.
        features: the features by which the n rows are compared, in any order.
        details: of the same rows, in the order of the features.
        places: int64[n], each row's number among the features and the details.
        sketches: the sketches of the rows, in any order; empty if no hash generator is switched on.
        sketch_places: int64[n], each row's number among the sketches; -1 for a row without.
        rejected: int64[r], the pairs of rows that people labelled as no duplicates, packed as by
            `rejections.pack`.
    """

    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    digests: NDArray[np.uint64]
    within: NDArray[np.int32]
    features: Features
    details: Details
    places: NDArray[np.int64]
    sketches: Sketches
    sketch_places: NDArray[np.int64]
    rejected: NDArray[np.int64] = field(default_factory=NONE_REJECTED.copy)

    def arrays(self, rows: NDArray[np.int32] | slice, rejected: NDArray[np.int64]) -> RowArrays:
        """Return some of the rows as the kernels take them.

        Args:
            rows: their numbers.
            rejected: as in `RowArrays`, by positions among these rows.
        """
        return RowArrays(
            self.fingerprints[rows],
            self.within[rows],
            self.places[rows],
            self.features.starts,
            self.features.hashes,
            self.features.weights,
            self.details.starts,
            self.details.values,
            self.sketches.starts,
            self.sketches.values,
            self.sketch_places[rows],
            rejected,
        )


def compared_texts(within: NDArray[np.int32], features: Features, details: Details) -> ComparedRows:
    """Return rows of which only the texts are known, in the order of their features."""
    count = within.size
    places = np.arange(count)
    return ComparedRows(
        np.zeros(count, np.uint64),
        np.zeros(count, np.bool_),
        np.zeros((count, 2), np.uint64),
        within,
        features,
        details,
        places,
        NO_SKETCHES,
        places,
    )
