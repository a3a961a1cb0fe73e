"""Which rows of a run are worth comparing, by the hashes that they share beside that of the run.

Most rows of a run share no hash but that of the run, while a pair needs several odd ones (`sketches`). A pair
that needs k of them is compared in one run alone: that of the k-th most frequent odd hash of those that the
two rows share. So a run counts the more frequent hashes only (ScanCount: Li, Lu and Lu 2008), and two rows of
it are compared if they share k - 1 of these. A pair that shares an even hash is compared in the run of that.

Of the runs in which nothing is counted, a pair is compared in one alone, too (`is_compared_elsewhere`): two
long texts in letters share some seventy hashes whatever they are about.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates.sketches import compiled_least_in_common

_FREQUENCIES = 1 << 20
_ROWS_A_STEP = 32

BYTES_A_HASH = 80
"""The most memory that a `SharedHashes` takes while it is made, for each odd hash of its rows. An even one
takes eight bytes."""


class SharedHashes(NamedTuple):
    """An index of n rows of a run by those of their odd hashes that are more frequent than that of the run.

    Attributes:
        needed: int16[n], how many of these hashes a pair of two such rows shares, in the run that compares
            it, beside those that all rows have; below 0 if these are too many. For rows that need different
            numbers, the smaller one.
        starts: int64[n + 1]; row i owns the slice starts[i]:starts[i + 1] of `slots`.
        slots: int32[m], the slot of each hash.
        ends: int32[s], where the rows of each slot end in `sharing`; where they begin, if all rows have the
            hash.
        places: int32[s], the first of the rows of each slot that `find_sharing` has not passed.
        sharing: int32[m], slot by slot the positions of the rows that have its hash, ascending.
        counts: int16[n], overwritten by `find_sharing`.
    """

    needed: NDArray[np.int16]
    starts: NDArray[np.int64]
    slots: NDArray[np.int32]
    ends: NDArray[np.int32]
    places: NDArray[np.int32]
    sharing: NDArray[np.int32]
    counts: NDArray[np.int16]


class RunHash(NamedTuple):
    """The hash that all rows of a run have.

    Attributes:
        value: uint64.
        frequencies: int32[f], by `count_odd`.
        shortest_counted: runs of fewer rows are not counted.
    """

    value: np.uint64
    frequencies: NDArray[np.int32]
    shortest_counted: int


@kernel
def count_odd(rows):
    """Return (int32[f], int32[n]): how many odd hashes there are in each of so many buckets, and in each row.

    The buckets tell which of two hashes is the more frequent one, well enough: any order of the hashes finds
    all pairs, this one finds them faster.
    """
    frequencies = zeros(_FREQUENCIES, np.int32)
    counts = zeros(rows.sketch_places.size, np.int32)
    for row in range(counts.size):
        place = rows.sketch_places[row]
        for k in range(rows.sketch_starts[place], rows.sketch_starts[place + 1]):
            is_odd = rows.sketch_values[k] & np.uint64(1)
            frequencies[_bucket(rows.sketch_values[k])] += np.int32(is_odd)
            counts[row] += np.int32(is_odd)
    return frequencies, counts


@inner
def _bucket(value):
    return (value >> np.uint64(1)) & np.uint64(_FREQUENCIES - 1)


@inner
def _may_be_counted(value, run_hash):
    """Return whether the rows of the run of a hash may be compared only if they share more hashes."""
    is_odd = value & np.uint64(1) == np.uint64(1)
    return is_odd and run_hash.frequencies[_bucket(value)] >= run_hash.shortest_counted


@inner
def is_compared_elsewhere(a, b, run_hash, rows):
    """Return whether two rows of a run are compared in another one, that of a smaller hash.

    A pair is compared in the run of the least hash that both rows have, of those whose runs are certainly not
    counted. A run that may be counted compares all the pairs that it finds.
    """
    if _may_be_counted(run_hash.value, run_hash):
        return False
    values, starts, places = rows.sketch_values, rows.sketch_starts, rows.sketch_places
    i, j = np.uint64(starts[places[a]]), np.uint64(starts[places[b]])
    while True:  # it ends at the hash of the run, if not before
        one, other = values[i], values[j]
        if one == other and not _may_be_counted(one, run_hash):
            return one != run_hash.value
        i += np.uint64(one <= other)
        j += np.uint64(other <= one)


@allocating
def index_sharing(some, run_hash, rows):
    """Return the `SharedHashes` of some rows.

    Args:
        some: int32[n], the rows of a run in the order of their positions.
        run_hash: the odd hash that all of them have.
        rows: `RowArrays`.
    """
    starts, hashes = _more_frequent(some, run_hash.value, run_hash.frequencies, rows)
    slots, ends = _slots_of(hashes)
    of_all = np.int64(0)
    places = zeros(ends.size, np.int32)
    for slot in range(1, ends.size):
        ends[slot] += ends[slot - 1]
        places[slot] = ends[slot - 1]
    sharing = empty(hashes.size, np.int32)
    for i in range(some.size):
        for slot in slots[starts[i] : starts[i + 1]]:
            sharing[places[slot]] = i
            places[slot] += 1
    # Each row of a run of letters in the same form has the hashes of the form: nothing to count.
    end = np.int32(0)
    for slot in range(ends.size):
        places[slot], end = end, ends[slot]
        if end - places[slot] == some.size:
            ends[slot] = places[slot]
            of_all += 1
    needed = empty(some.size, np.int16)
    for i in range(some.size):
        place = rows.sketch_places[some[i]]
        size = rows.sketch_starts[place + 1] - rows.sketch_starts[place]
        needed[i] = max(np.int64(-1), compiled_least_in_common(size) - 1 - of_all)
    return SharedHashes(needed, starts, slots, ends, places, sharing, zeros(some.size, np.int16))


@allocating
def _more_frequent(some, shared, frequencies, rows):
    """Return (int64[n + 1] slices, uint64[m]): the odd hashes of each row that are more frequent than one.

    Of two hashes that are as frequent, the larger one counts as more frequent.
    """
    most = np.int64(0)
    for row in some:
        place = rows.sketch_places[row]
        most += rows.sketch_starts[place + 1] - rows.sketch_starts[place]
    starts, hashes = zeros(some.size + 1, np.int64), empty(most + 1, np.uint64)
    for i in range(some.size):
        place = rows.sketch_places[some[i]]
        first, end = rows.sketch_starts[place], rows.sketch_starts[place + 1]
        starts[i + 1] = _append_more_frequent(
            rows.sketch_values, first, end, shared, frequencies, hashes, starts[i]
        )
    return starts, hashes[: starts[-1]]


@inner
def _append_more_frequent(values, first, end, shared, frequencies, hashes, used):
    """Write those of the values to `hashes` from `used` on; return where they end.

    The loop has no branch, since the processor would often predict it wrongly.
    """
    frequency, place = frequencies[_bucket(shared)], np.uint64(used)
    for k in range(np.uint64(first), np.uint64(end)):
        value = values[k]
        other = frequencies[_bucket(value)]
        is_more_frequent = (other > frequency) | ((other == frequency) & (value > shared))
        hashes[place] = value
        place += np.uint64(is_more_frequent) & value  # 1 if it is odd, too
    return np.int64(place)


@allocating
def _slots_of(hashes):
    """Return (int32[m] the slot of each odd hash, equal hashes in one slot, int32[s] how many each has)."""
    count = 64
    while count < 2 * hashes.size:
        count *= 2
    last = np.uint64(count - 1)
    in_slot, sizes = zeros(count, np.uint64), zeros(count, np.int32)
    slots = empty(hashes.size, np.int32)
    for k in range(hashes.size):
        slot = (hashes[k] >> np.uint64(1)) & last
        while in_slot[slot] != np.uint64(0) and in_slot[slot] != hashes[k]:  # an odd hash is not 0
            slot = (slot + np.uint64(1)) & last
        in_slot[slot] = hashes[k]
        sizes[slot] += 1
        slots[k] = slot
    return slots, sizes


@inner
def count_steps(index):
    """Return how many hashes that two rows share `find_sharing` counts for all rows together."""
    steps = np.int64(0)
    for slot in range(index.ends.size):
        count = np.int64(index.ends[slot]) - np.int64(index.places[slot])
        steps += count * (count - 1) // 2
    return steps


@inner
def find_sharing(i, index, near):
    """Write to `near` the positions after i of the rows that are to be compared with row i.

    Args:
        i: the position of a row. The rows are passed in their order, each once.
        index: the result of `index_sharing`.
        near: int64[n].

    Returns:
        how many these are.
    """
    counts, sharing = index.counts, index.sharing
    for j in range(np.uint64(i + 1), np.uint64(counts.size)):
        counts[j] = 0
    for k in range(index.starts[i], index.starts[i + 1]):
        slot = np.uint64(index.slots[k])
        index.places[slot] += 1  # its hashes are distinct, so the first place is that of row i
        for place in range(np.uint64(index.places[slot]), np.uint64(index.ends[slot])):
            counts[np.uint64(sharing[place])] += np.int16(1)
    return _find_equal(i, index.needed, counts, near)


@inner
def _find_equal(i, needed, counts, near):
    """Write to `near` the positions after i where the count is the needed one; return their number."""
    found, own = np.uint64(0), needed[i]
    j, end = np.uint64(i + 1), np.uint64(counts.size)
    while j < end:
        step = min(np.uint64(_ROWS_A_STEP), end - j)
        # Most steps have none. Without a branch several rows are compared at a time.
        equal = np.int16(0)
        for k in range(j, j + step):
            equal += np.int16(counts[k] == min(own, needed[k]))
        if equal:
            for k in range(j, j + step):
                near[found] = k
                found += np.uint64(counts[k] == min(own, needed[k]))
        j += step
    return np.int64(found)
