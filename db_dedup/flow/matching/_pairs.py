"""The compiled kernels of `match` that list pairs, and join the groups of pairs that are given.

`rows` and `rule` are the `RowArrays` and `RuleNumbers` of `compare.kernels`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import resized
from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.compare.kernels import confirmed, is_candidate, kind_of
from db_dedup.flow.matching.groups import find_root

_VALUES_A_PAGE = 512
"""At least: of eight bytes each."""


class FoundPairs(NamedTuple):
    """Room for p pairs.

    Attributes:
        left: int32[p], row numbers.
        right: int32[p], row numbers.
        distances: int16[p], bits in which the fingerprints differ.
        similarities: float64[p].
        kinds: uint8[p], packed as in `records.kinds`.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    distances: NDArray[np.int16]
    similarities: NDArray[np.float64]
    kinds: NDArray[np.uint8]


@kernel
def join_confirmed(left, right, parents, rows, rule):
    """Join the two groups of every confirmed pair.

    Returns:
        bool[p], True for the pairs that joined two different groups.
    """
    joined = zeros(left.size, np.bool_)
    for p in range(left.size):
        a, b = find_root(parents, left[p]), find_root(parents, right[p])
        if a == b:
            continue
        is_duplicate, _ = confirmed(left[p], right[p], rows, rule)
        if is_duplicate:
            parents[max(a, b)] = min(a, b)
            joined[p] = True
    return joined


@kernel
def read_features(first, end, numbers, rows):
    """Read a value of each page that has features of some rows, so that the system brings it into memory.

    Args:
        first: position of a row.
        end: position after the last one.
        numbers: int32[n], row numbers.
        rows: `RowArrays`.

    Returns:
        Something of the values: else the compiler would leave them out.
    """
    found = np.uint64(0)
    for i in range(first, end):
        place = rows.places[numbers[i]]
        if place >= 0:
            for j in range(rows.starts[place], rows.starts[place + 1], _VALUES_A_PAGE):
                found ^= rows.hashes[j]
            if rows.starts[place + 1] > rows.starts[place]:
                found ^= rows.hashes[rows.starts[place + 1] - 1]
    return found


@kernel
def pairs_within_groups(first, last, members, roots, rows, rule):
    """Return every duplicate pair of a member from first to last and a member of its group after it.

    Args:
        first: position of a member.
        last: position after the last one.
        members: row numbers, group by group, ascending within each group.
        roots: int32[n], the root of each row's group.
        rows: `RowArrays`.
        rule: `RuleNumbers`.

    Returns:
        (left, right, distances, similarities, kinds).
    """
    pairs, found = no_pairs(), np.int64(0)
    for i in range(first, last):
        end = i + 1
        while end < members.size and roots[members[end]] == roots[members[i]]:
            end += 1
        pairs = with_room(pairs, found + end - i)
        found = _add_duplicates(members[i], members[i + 1 : end], rows, rule, pairs, found)
    return filled(pairs, found)


@kernel
def pairs_between(lefts, rights, rows, rule):
    """Return every duplicate pair of one of `lefts` and one of `rights`."""
    pairs, found = no_pairs(), np.int64(0)
    for a in lefts:
        pairs = with_room(pairs, found + rights.size)
        found = _add_duplicates(a, rights, rows, rule, pairs, found)
    return filled(pairs, found)


@allocating
def no_pairs():
    """Return the arrays that `add` fills."""
    size = 1024
    return FoundPairs(
        empty(size, np.int32),
        empty(size, np.int32),
        empty(size, np.int16),
        empty(size, np.float64),
        empty(size, np.uint8),
    )


@allocating
def with_room(pairs, size):
    """Return these arrays, or larger ones that begin with them if so many pairs do not fit."""
    if size <= pairs.left.size:
        return pairs
    size *= 2
    return FoundPairs(
        resized(pairs.left, size),
        resized(pairs.right, size),
        resized(pairs.distances, size),
        resized(pairs.similarities, size),
        resized(pairs.kinds, size),
    )


@inner
def _add_duplicates(a, others, rows, rule, pairs, found):
    """Add the duplicate pairs of a row with others; return how many pairs there are then."""
    for b in others:
        if is_candidate(a, b, rows, rule):
            found = add(a, b, rows, rule, pairs, found)
    return found


@inner
def add(a, b, rows, rule, pairs, found):
    """Add the candidate pair of a and b if it is confirmed; return how many pairs there are then."""
    is_duplicate, similarity = confirmed(a, b, rows, rule)
    if not is_duplicate:
        return found
    values = rows.fingerprints
    pairs.left[found], pairs.right[found] = a, b
    pairs.distances[found], pairs.similarities[found] = popcount(values[a] ^ values[b]), similarity
    pairs.kinds[found] = kind_of(np.int64(a), np.int64(b), rows, rule)
    return found + 1


@allocating
def filled(pairs, found):
    """Return (left, right, distances, similarities, kinds) of so many pairs."""
    return (
        pairs.left[:found].copy(),
        pairs.right[:found].copy(),
        pairs.distances[:found].copy(),
        pairs.similarities[:found].copy(),
        pairs.kinds[:found].copy(),
    )


@kernel
def are_duplicates(left, right, rows, rule):
    """Return bool[p]: whether left[i] and right[i] are a candidate pair that is confirmed."""
    result = zeros(left.size, np.bool_)
    for p in range(left.size):
        if is_candidate(left[p], right[p], rows, rule):
            result[p], _ = confirmed(left[p], right[p], rows, rule)
    return result
