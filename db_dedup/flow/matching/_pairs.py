"""The compiled kernels of `match` that list pairs, and join the groups of pairs that are given.

`rows` and `rule` are the `RowArrays` and `RuleNumbers` of `compare.kernels`.
"""

import numpy as np

from db_dedup.flow._arrays import resized
from db_dedup.flow._compiled import allocating, kernel
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.compare.kernels import confirmed, is_candidate, kind_of
from db_dedup.flow.matching.groups import find_root

_VALUES_A_PAGE = 512
"""At least: of eight bytes each."""


@kernel
def join_confirmed(left, right, parents, rows, rule):
    """Join the two groups of every confirmed pair.

    Returns:
        bool[p], True for the pairs that joined two different groups.
    """
    joined = np.zeros(left.size, np.bool_)
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
    found, pairs = np.int64(0), no_pairs()
    for i in range(first, last):
        for j in range(i + 1, members.size):
            if roots[members[j]] != roots[members[i]]:
                break
            found, pairs = _added(members[i], members[j], rows, rule, found, pairs)
    return found_pairs(found, pairs)


@kernel
def pairs_between(lefts, rights, rows, rule):
    """Return every duplicate pair of one of `lefts` and one of `rights`."""
    found, pairs = np.int64(0), no_pairs()
    for a in lefts:
        for b in rights:
            found, pairs = _added(a, b, rows, rule, found, pairs)
    return found_pairs(found, pairs)


@allocating
def no_pairs():
    """Return the arrays that `added` fills."""
    size = 1024
    return (
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int16),
        np.empty(size, np.float64),
        np.empty(size, np.uint8),
    )


@allocating
def _added(a, b, rows, rule, found, pairs):
    """Add the pair of a and b if they are duplicates; return (the number of pairs, their arrays)."""
    if not is_candidate(a, b, rows, rule):
        return found, pairs
    return added(a, b, rows, rule, found, pairs)


@allocating
def added(a, b, rows, rule, found, pairs):
    """Add the candidate pair of a and b if it is confirmed; return (the number of pairs, their arrays)."""
    is_duplicate, similarity = confirmed(a, b, rows, rule)
    if not is_duplicate:
        return found, pairs
    left, right, distances, similarities, kinds = pairs
    if found == left.size:
        size = 2 * found
        left, right = resized(left, size), resized(right, size)
        distances, similarities = resized(distances, size), resized(similarities, size)
        kinds = resized(kinds, size)
    values = rows.fingerprints
    left[found], right[found] = a, b
    distances[found], similarities[found] = popcount(values[a] ^ values[b]), similarity
    kinds[found] = kind_of(np.int64(a), np.int64(b), rows, rule)
    return found + 1, (left, right, distances, similarities, kinds)


@allocating
def found_pairs(found, pairs):
    """Return the part of the arrays that is filled."""
    left, right, distances, similarities, kinds = pairs
    return (
        left[:found].copy(),
        right[:found].copy(),
        distances[:found].copy(),
        similarities[:found].copy(),
        kinds[:found].copy(),
    )


@kernel
def are_duplicates(left, right, rows, rule):
    """Return bool[p]: whether left[i] and right[i] are a candidate pair that is confirmed."""
    result = np.zeros(left.size, np.bool_)
    for p in range(left.size):
        if is_candidate(left[p], right[p], rows, rule):
            result[p], _ = confirmed(left[p], right[p], rows, rule)
    return result
