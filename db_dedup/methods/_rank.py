"""The loop of TextRank."""

import numpy as np

from db_dedup.flow._compiled import allocating, kernel
from db_dedup.flow._new_arrays import empty, zeros


@kernel
def rank(stream, starts, hashes, window, damping, tolerance, most_rounds):
    """Return float64[m]: the TextRank of each distinct token of each row.

    Args:
        stream: uint64, the tokens of all rows in their order, after each row a 1.
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], the distinct tokens of each row, ascending.
        window: two tokens are neighbours if they are fewer than so many places apart.
        damping: 0 to 1.
        tolerance: iteration ends when no rank changes by more.
        most_rounds: or after so many rounds.
    """
    ranks = empty(hashes.size, np.float64)
    begin = 0
    for row in range(starts.size - 1):
        end = begin
        while stream[end] != 1:
            end += 1
        first, last = starts[row], starts[row + 1]
        places = empty(end - begin, np.int64)
        for i in range(begin, end):
            places[i - begin] = np.searchsorted(hashes[first:last], stream[i])
        edges = _edges(places, window)
        _rank_row(edges, last - first, damping, tolerance, most_rounds, ranks[first:last])
        begin = end + 1
    return ranks


@allocating
def _edges(places, window):
    """Return int64[e, 2]: each two different tokens that are neighbours, as often as they are."""
    edges = empty((places.size * (window - 1), 2), np.int64)
    used = 0
    for i in range(places.size):
        for j in range(i + 1, min(i + window, places.size)):
            if places[i] != places[j]:
                edges[used, 0], edges[used, 1] = places[i], places[j]
                used += 1
    return edges[:used]


@allocating
def _rank_row(edges, count, damping, tolerance, most_rounds, ranks):
    """Write the ranks of one row to `ranks`, float64[count]."""
    degrees = zeros(count, np.float64)
    for e in range(edges.shape[0]):
        degrees[edges[e, 0]] += 1
        degrees[edges[e, 1]] += 1
    ranks[:] = 1.0
    new = empty(count, np.float64)
    for _ in range(most_rounds):
        new[:] = 1 - damping
        for e in range(edges.shape[0]):
            a, b = edges[e, 0], edges[e, 1]
            new[a] += damping * ranks[b] / degrees[b]
            new[b] += damping * ranks[a] / degrees[a]
        change = 0.0
        for token in range(count):
            change = max(change, abs(new[token] - ranks[token]))
            ranks[token] = new[token]
        if change <= tolerance:
            break
