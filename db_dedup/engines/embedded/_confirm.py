"""The compiled kernels of `matching`: confirm candidates by their features, join rows, list pairs.

They share the last argument, a tuple: measure (-1: being proposed decides), threshold, within, and each row's
place among the features, whose starts, hashes and weights follow, and the rejected pairs, packed and
ascending. `proposal` is a tuple, too: fingerprints, radius, the sketches' starts and values, and each row's
place among these.
"""

import numba as nb
import numpy as np

from db_dedup.flow._bucket_join import popcount
from db_dedup.flow.groups import find_root
from db_dedup.flow.similarity import least_shared_of, similarity_of
from db_dedup.flow.sketches import meet


@nb.njit(cache=True, nogil=True)
def confirmed(a, b, rule):  # type: ignore[no-untyped-def]
    """(whether proposed rows a and b are duplicates, their similarity, or NaN where it was not needed)."""
    measure, threshold, within, places, starts, hashes, weights, rejected = rule
    if within[a] != within[b]:
        return False, np.nan
    similarity = np.nan
    if measure >= 0:
        size_a = starts[places[a] + 1] - starts[places[a]]
        size_b = starts[places[b] + 1] - starts[places[b]]
        least = least_shared_of(measure, threshold, size_a, size_b)
        similarity = similarity_of(measure, starts, hashes, weights, places[a], places[b], least)
        if similarity < threshold:
            return False, similarity
    return not _is_rejected(a, b, rejected), similarity


@nb.njit(cache=True, nogil=True)
def _is_rejected(a, b, rejected):  # type: ignore[no-untyped-def]
    """Whether people have said that rows a and b are no duplicates."""
    if rejected.size == 0:
        return False
    packed = (np.int64(min(a, b)) << 32) | np.int64(max(a, b))
    place = np.searchsorted(rejected, packed)
    return place < rejected.size and rejected[place] == packed


@nb.njit(cache=True, nogil=True)
def join_confirmed(left, right, parents, rule):  # type: ignore[no-untyped-def]
    """Join the groups of every confirmed pair that are not one yet.

    Returns:
        bool[p], True for the pairs that joined two groups.
    """
    joined = np.zeros(left.size, np.bool_)
    for p in range(left.size):
        a, b = find_root(parents, left[p]), find_root(parents, right[p])
        if a == b:
            continue
        is_duplicate, _ = confirmed(left[p], right[p], rule)
        if is_duplicate:
            parents[max(a, b)] = min(a, b)
            joined[p] = True
    return joined


@nb.njit(cache=True, nogil=True)
def _proposed(a, b, proposal):  # type: ignore[no-untyped-def]
    values, radius, _, _, _ = proposal
    return popcount(values[a] ^ values[b]) <= np.uint64(radius) or sketches_meet(a, b, proposal)


@nb.njit(cache=True, nogil=True)
def sketches_meet(a, b, proposal):  # type: ignore[no-untyped-def]
    """Whether the sketches of rows a and b meet."""
    _, _, starts, sketched, places = proposal
    return meet(starts, sketched, places[a], places[b])


@nb.njit(cache=True, nogil=True)
def pairs_within_groups(members, roots, proposal, rule):  # type: ignore[no-untyped-def]
    """Every duplicate pair of members with one root; members stand group by group, ascending within each.

    Returns:
        (left, right, distances, similarities).
    """
    found, pairs = 0, _no_pairs()
    for i in range(members.size):
        for j in range(i + 1, members.size):
            if roots[members[j]] != roots[members[i]]:
                break
            found, pairs = _added(members[i], members[j], proposal, rule, found, pairs)
    return _found(found, pairs)


@nb.njit(cache=True, nogil=True)
def pairs_of_some(first, last, count, proposal, rule):  # type: ignore[no-untyped-def]
    """Every duplicate pair of rows first to last, with each other and with all after them, up to count."""
    found, pairs = 0, _no_pairs()
    for i in range(first, last):
        for j in range(i + 1, count):
            found, pairs = _added(i, j, proposal, rule, found, pairs)
    return _found(found, pairs)


@nb.njit(cache=True, nogil=True)
def _no_pairs():  # type: ignore[no-untyped-def]
    size = 1024
    return (
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int16),
        np.empty(size, np.float64),
    )


@nb.njit(cache=True, nogil=True)
def _added(a, b, proposal, rule, found, pairs):  # type: ignore[no-untyped-def]
    """(how many pairs there are, the arrays that hold them), a and b among them if they are duplicates."""
    if not _proposed(a, b, proposal):
        return found, pairs
    is_duplicate, similarity = confirmed(a, b, rule)
    if not is_duplicate:
        return found, pairs
    left, right, distances, similarities = pairs
    if found == left.size:
        size = 2 * found
        left, right = resized(left, size), resized(right, size)
        distances, similarities = resized(distances, size), resized(similarities, size)
    values = proposal[0]
    left[found], right[found] = a, b
    distances[found], similarities[found] = popcount(values[a] ^ values[b]), similarity
    return found + 1, (left, right, distances, similarities)


@nb.njit(cache=True, nogil=True)
def _found(found, pairs):  # type: ignore[no-untyped-def]
    left, right, distances, similarities = pairs
    return left[:found].copy(), right[:found].copy(), distances[:found].copy(), similarities[:found].copy()


@nb.njit(cache=True, nogil=True)
def resized(array, size):  # type: ignore[no-untyped-def]
    """A larger array that begins with this one."""
    bigger = np.empty(size, array.dtype)
    bigger[: array.size] = array
    return bigger


@nb.njit(cache=True, nogil=True)
def confirmed_similarities(left, right, rule):  # type: ignore[no-untyped-def]
    """float64[p]: the similarity of each pair, NaN where none is computed."""
    result = np.empty(left.size, np.float64)
    for p in range(left.size):
        _, result[p] = confirmed(left[p], right[p], rule)
    return result


@nb.njit(cache=True, nogil=True)
def are_duplicates(left, right, proposal, rule):  # type: ignore[no-untyped-def]
    """bool[p]: whether left[i] and right[i] are proposed and confirmed."""
    result = np.zeros(left.size, np.bool_)
    for p in range(left.size):
        if _proposed(left[p], right[p], proposal):
            result[p], _ = confirmed(left[p], right[p], rule)
    return result
