"""The compiled kernels that list every duplicate pair of many rows.

A row is compared with the rows that share hashes with it, which an index of the hashes gives, and with the
rows whose fingerprints are near, which are found by comparing each with each: that takes a nanosecond a pair.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.candidates.sketches import compiled_least_in_common
from db_dedup.flow.matching._pairs import add, filled, no_pairs, with_room


class HashIndex(NamedTuple):
    """The hashes of n rows, sorted.

    Attributes:
        rows: int32[m], the row of each hash; rows with the same hash follow each other in ascending order.
        ends: int64[m], the end of the rows with the same hash.
        first_of: int64[n + 1], row i owns the slice first_of[i]:first_of[i + 1] of `places`.
        places: int64[m], where each hash of a row is in `rows`.
        is_even: bool[m], whether the hash in that place is even: a single common one is enough.
    """

    rows: NDArray[np.int32]
    ends: NDArray[np.int64]
    first_of: NDArray[np.int64]
    places: NDArray[np.int64]
    is_even: NDArray[np.bool_]


@kernel
def index_hashes(rows):
    """Return the `HashIndex` of all rows of `RowArrays`."""
    starts, values, places = rows.sketch_starts, rows.sketch_values, rows.sketch_places
    count = rows.fingerprints.size
    first_of = zeros(count + 1, np.int64)
    if values.size:
        for row in range(count):
            first_of[row + 1] = first_of[row] + starts[places[row] + 1] - starts[places[row]]
    hashes, owners = empty(first_of[-1], np.uint64), empty(first_of[-1], np.int32)
    for row in range(count):
        first, last = first_of[row], first_of[row + 1]
        if last > first:
            hashes[first:last] = values[starts[places[row]] : starts[places[row] + 1]]
            owners[first:last] = row
    order = np.argsort(hashes, kind="mergesort")
    places_of, ends = empty(order.size, np.int64), empty(order.size, np.int64)
    is_even = empty(order.size, np.bool_)
    end = order.size
    for place in range(order.size - 1, -1, -1):
        value = hashes[order[place]]
        if place + 1 < order.size and value != hashes[order[place + 1]]:
            end = place + 1
        ends[place], places_of[order[place]] = end, place
        is_even[place] = value & np.uint64(1) == np.uint64(0)
    return HashIndex(owners[order], ends, first_of, places_of, is_even)


@kernel
def pairs_of_some(first, last, index, rows, rule):
    """Return every duplicate pair of a row from first to last and a row after it.

    Returns:
        (left, right, distances, similarities, kinds), sorted by the rows.
    """
    pairs, found = no_pairs(), np.int64(0)
    count = rows.fingerprints.size
    common, shares_even = zeros(count, np.int32), zeros(count, np.bool_)
    for i in range(first, last):
        _count_common(i, index, common, shares_even)
        pairs = with_room(pairs, found + count - i)
        found = _add_candidates(i, index, common, shares_even, rows, rule, pairs, found)
    return filled(pairs, found)


@inner
def _count_common(i, index, common, shares_even):
    """Count the hashes that each later row shares with row i, and whether an even one is among them."""
    for k in range(index.first_of[i], index.first_of[i + 1]):
        place = index.places[k]
        for other in range(place + 1, index.ends[place]):
            common[index.rows[other]] += 1
            shares_even[index.rows[other]] |= index.is_even[place]


@inner
def _add_candidates(i, index, common, shares_even, rows, rule, pairs, found):
    """Add the duplicates of row i after it, and count anew; return how many pairs there are then."""
    values, size = rows.fingerprints, index.first_of[i + 1] - index.first_of[i]
    for j in range(i + 1, common.size):
        is_candidate = popcount(values[i] ^ values[j]) <= np.uint64(rule.radius)
        if common[j]:
            smaller = min(size, index.first_of[j + 1] - index.first_of[j])
            is_candidate |= shares_even[j] or common[j] >= compiled_least_in_common(smaller)
            common[j], shares_even[j] = 0, False
        if is_candidate:
            found = add(i, j, rows, rule, pairs, found)
    return found
