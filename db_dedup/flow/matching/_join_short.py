"""The compiled kernel that joins short rows which share a hash.

The hashes of short rows are single grams, so a run of rows with the same hash may be long, and most of its
rows are not alike. `_join_features` cannot find these pairs, since two similar short rows may share no
feature. So every two short rows of a run are compared, most of them by a few operations on the sets of their
symbols.
"""

import numpy as np

from db_dedup.flow._compiled import inner
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.compare.kernels import are_short, confirmed, least_shared, share_enough_hashes
from db_dedup.flow.features.characters import MOST_EDITS, SHORT
from db_dedup.flow.features.details import CHARACTERS, SECTIONS
from db_dedup.flow.matching.groups import find_root, joined

_BOUNDS = SHORT + 1


@inner
def least_shared_of_short(rule):
    """Return int64[31, 31]: how many features two short rows with so many must share for the measure."""
    bounds = np.zeros((_BOUNDS, _BOUNDS), np.int64)
    for a in range(1, _BOUNDS):
        for b in range(1, _BOUNDS):
            bounds[a, b] = least_shared(rule.measure, rule.threshold, a, b)
    return bounds


@inner
def compare_short(some, bounds, parents, rows, rule, pairs, found):
    """Compare every two short rows of a run.

    Args:
        some: the row numbers of the run.
        bounds: the result of `least_shared_of_short`.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`.
        rule: `RuleNumbers`.
        pairs: (left, right) row numbers of the pairs that were found before.
        found: how many these are.

    Returns:
        (the pairs, their number, how many rows of the run are not short).
    """
    short, others = _short_of(some, rows, rule)
    sets, lengths, sizes = _symbols_of(short, rows)
    for i in range(short.size - 1):
        own, length, size = sets[i], lengths[i], sizes[i]
        for j in range(i + 1, short.size):
            only_one = np.int64(popcount(own & ~sets[j]))
            only_other = np.int64(popcount(sets[j] & ~own))
            if max(only_one, only_other) > MOST_EDITS:
                # The features that are shared begin at as many different symbols, which both rows have.
                least = bounds[size, sizes[j]]
                if only_one > length - least or only_other > lengths[j] - least:
                    continue
            a, b = short[i], short[j]
            if find_root(parents, a) == find_root(parents, b):
                continue
            if confirmed(a, b, rows, rule)[0] and share_enough_hashes(a, b, rows):
                pairs, found = joined(a, b, parents, pairs, found)
    return pairs, found, others


@inner
def _short_of(some, rows, rule):
    """Return (the short rows, the number of the others)."""
    short = np.empty(some.size, some.dtype)
    count = 0
    for row in some:
        if are_short(row, row, rows, rule):
            short[count] = row
            count += 1
    return short[:count], some.size - count


@inner
def _symbols_of(short, rows):
    """Return (the sets of the symbols, their numbers, the numbers of features) of short rows.

    A number of features that `least_shared_of_short` does not know is 0, which has no bound.
    """
    sets = np.empty(short.size, np.uint64)
    lengths, sizes = np.empty(short.size, np.int64), np.empty(short.size, np.int64)
    for i in range(short.size):
        place = rows.places[short[i]]
        first = rows.detail_starts[place * SECTIONS + CHARACTERS]
        sets[i] = rows.details[first]
        lengths[i] = rows.detail_starts[place * SECTIONS + CHARACTERS + 1] - first - 1
        size = rows.starts[place + 1] - rows.starts[place]
        sizes[i] = size if size < _BOUNDS else 0
    return sets, lengths, sizes
