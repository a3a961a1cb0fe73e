"""What kind of pair two duplicates are: by the shares of their features that are common, and by their places.

The definitions, with `share_a` the share of the features of row a that row b has, too:

- `copy`: at least 95 % of all features of both rows are common, and they do not each name a place that the
  other does not.
- `contained`: at least 80 % of the smaller row are common, and it has at most 75 % as many features as the
  larger row. The smaller row is part of the larger one.
- `edited`: at least 60 % of each row are common. Two short texts that were compared by their edit similarity
  are edited whatever they share.
- `partial`: all others; the rows have a part in common.

All are symmetric: they depend on the two rows and the recipe, not on which row comes first.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner
from db_dedup.flow.features.details import PLACES, SECTIONS
from db_dedup.flow.features.places import NAME_BITS, are_similar_names
from db_dedup.records.kinds import CONTAINED, COPY, EDITED, KIND_BITS, OTHER_PLACE, PARTIAL, SECOND_IS_PART

LEAST_OF_COPY: Final = 0.95
LEAST_OF_PART: Final = 0.8
LARGEST_PART: Final = 0.75
LEAST_OF_EDITED: Final = 0.6


@inner
def kind_of_sets(shared, size_a, size_b, is_short, names_other_place):
    """Return the packed kind of two rows.

    Args:
        shared: how many features are common.
        size_a: how many features row a has.
        size_b: how many features row b has.
        is_short: whether both are short texts, compared by their edit similarity.
        names_other_place: whether each names a place that the other does not.
    """
    flag = OTHER_PLACE if names_other_place else 0
    if not names_other_place and shared >= LEAST_OF_COPY * (size_a + size_b - shared):
        return np.uint8(COPY)
    smaller, larger = min(size_a, size_b), max(size_a, size_b)
    if shared >= LEAST_OF_PART * smaller and smaller <= LARGEST_PART * larger:
        part = SECOND_IS_PART if size_b < size_a else 0
        return np.uint8(CONTAINED | part | flag)
    if is_short or shared >= LEAST_OF_EDITED * larger:
        return np.uint8(EDITED | flag)
    return np.uint8(PARTIAL | flag)


@inner
def name_other_places(starts, values, a, b):
    """Return whether rows a and b each name a place of one sort that the other does not.

    Args:
        starts: of the details.
        values: of the details; names are in ascending order, so that those of one sort follow each other.
        a: the row's number among the details.
        b: that of the other row.
    """
    i, i_end = starts[a * SECTIONS + PLACES], starts[a * SECTIONS + PLACES + 1]
    j, j_end = starts[b * SECTIONS + PLACES], starts[b * SECTIONS + PLACES + 1]
    while i < i_end and j < j_end:
        sort, other = values[i] >> np.uint64(NAME_BITS), values[j] >> np.uint64(NAME_BITS)
        i_next, j_next = i, j
        while i_next < i_end and values[i_next] >> np.uint64(NAME_BITS) == sort:
            i_next += 1
        while j_next < j_end and values[j_next] >> np.uint64(NAME_BITS) == other:
            j_next += 1
        if sort == other:
            if _has_other(values, i, i_next, j, j_next) and _has_other(values, j, j_next, i, i_next):
                return True
            i, j = i_next, j_next
        elif sort < other:
            i = i_next
        else:
            j = j_next
    return False


@inner
def _has_other(values, i, i_end, j, j_end):
    """Return whether one of the names from i on is similar to none of those from j on."""
    for place in range(i, i_end):
        is_other = True
        for other in range(j, j_end):
            if are_similar_names(values[place], values[other]):
                is_other = False
                break
        if is_other:
            return True
    return False


def swapped_kinds(kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return uint8[p]: the packed kinds of the same pairs with their rows the other way round."""
    is_contained = (kinds & KIND_BITS) == CONTAINED
    return np.where(is_contained, kinds ^ SECOND_IS_PART, kinds).astype(np.uint8)
