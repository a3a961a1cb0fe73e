"""The compiled kernels of `matching`: confirm candidates by their features, join rows into groups.

They share the last argument, a tuple: measure (-1: the distance decides), threshold, within, and each row's
place among the features, whose starts, hashes and weights follow.
"""

import numba as nb
import numpy as np

from db_dedup.flow._bucket_join import popcount
from db_dedup.flow.groups import find_root
from db_dedup.flow.similarity import similarity_of


@nb.njit(cache=True, nogil=True)
def _confirmed(a, b, rule):  # type: ignore[no-untyped-def]
    """(whether rows a and b are duplicates, their similarity or NaN)."""
    measure, threshold, within, places, starts, hashes, weights = rule
    if within[a] != within[b]:
        return False, np.nan
    if measure < 0:
        return True, np.nan
    similarity = similarity_of(measure, starts, hashes, weights, places[a], places[b])
    return similarity >= threshold, similarity


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
        is_duplicate, _ = _confirmed(left[p], right[p], rule)
        if is_duplicate:
            parents[max(a, b)] = min(a, b)
            joined[p] = True
    return joined


@nb.njit(cache=True, nogil=True)
def pairs_within_groups(members, roots, values, radius, rule):  # type: ignore[no-untyped-def]
    """Every duplicate pair of members with one root; members stand group by group, ascending within each.

    Returns:
        (left, right, distances, similarities).
    """
    size = 1024
    found = 0
    left, right = np.empty(size, np.int32), np.empty(size, np.int32)
    distances, similarities = np.empty(size, np.int16), np.empty(size, np.float64)
    for i in range(members.size):
        for j in range(i + 1, members.size):
            if roots[members[j]] != roots[members[i]]:
                break
            distance = popcount(values[members[i]] ^ values[members[j]])
            if distance > np.uint64(radius):
                continue
            is_duplicate, similarity = _confirmed(members[i], members[j], rule)
            if not is_duplicate:
                continue
            if found == size:
                size *= 2
                left, right = _resized(left, size), _resized(right, size)
                distances, similarities = _resized(distances, size), _resized(similarities, size)
            left[found], right[found] = members[i], members[j]
            distances[found], similarities[found] = distance, similarity
            found += 1
    return left[:found].copy(), right[:found].copy(), distances[:found].copy(), similarities[:found].copy()


@nb.njit(cache=True, nogil=True)
def _resized(array, size):  # type: ignore[no-untyped-def]
    bigger = np.empty(size, array.dtype)
    bigger[: array.size] = array
    return bigger


@nb.njit(cache=True, nogil=True)
def confirmed_similarities(left, right, rule):  # type: ignore[no-untyped-def]
    """float64[p]: the similarity of each pair, NaN where none is computed."""
    result = np.empty(left.size, np.float64)
    for p in range(left.size):
        _, result[p] = _confirmed(left[p], right[p], rule)
    return result


@nb.njit(cache=True, nogil=True)
def are_duplicates(left, right, values, radius, rule):  # type: ignore[no-untyped-def]
    """bool[p]: whether left[i] and right[i] are near enough and confirmed."""
    result = np.zeros(left.size, np.bool_)
    for p in range(left.size):
        if popcount(values[left[p]] ^ values[right[p]]) <= np.uint64(radius):
            result[p], _ = _confirmed(left[p], right[p], rule)
    return result
