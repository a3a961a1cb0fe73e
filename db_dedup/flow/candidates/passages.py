"""Passage hashes by winnowing (Schleimer, Wilkerson and Aiken 2003): find texts that quote each other.

A passage is a run of twelve characters. Of every twelve consecutive passages the one with the first hash is
kept, in the order of the mixed hashes. The choice depends on nothing else. So two texts that share any 23
consecutive characters keep a common passage hash, wherever the characters are and however long the texts are.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import sort_part
from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow._new_arrays import empty, zeros

PASSAGE_CHARACTERS: Final = 12
WINDOW: Final = 12
MOST_PASSAGES: Final = 2000
"""The most passage hashes of a row; of a text past some 13,000 characters the smallest hashes are kept."""

_GRAMS: Final = PASSAGE_CHARACTERS - 2
_ROW_END: Final = 1
_BASE: Final = 0x9E3779B97F4A7C15


def find_passages(
    streams: Sequence[NDArray[np.uint64]], row_count: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the passage hashes of each row.

    Args:
        streams: for each text column the result of `hash_grams`: character 3-grams, row after row. No passage
            reaches from one column into the next.
        row_count: n.

    Returns:
        (int64[n + 1] the rows' slices, uint64[m] passage hashes, ascending and distinct within a row). A
        column of fewer than twelve characters has no hash, one of 12 to 23 characters has one.
    """
    stream = streams[0] if len(streams) == 1 else np.concatenate([np.empty(0, np.uint64), *streams])
    firsts = np.cumsum([0, *map(len, streams)])[:-1].astype(np.int64)
    starts, passages = _find(stream, firsts, row_count)
    return starts, passages


@kernel
def _find(stream, firsts, row_count):
    starts = zeros(row_count + 1, np.int64)
    kept = empty(stream.size, np.uint64)
    positions = firsts.copy()
    used = np.int64(0)
    for row in range(row_count):
        first = used
        for column in range(positions.size):
            begin = positions[column]
            end = begin
            while stream[end] != _ROW_END:
                end += 1
            positions[column] = end + 1
            if end - begin >= _GRAMS:
                used = _winnowed(stream[begin:end], kept, used)
        sort_part(kept, first, used)
        last, used = used, first
        for i in range(first, last):
            if used - first < MOST_PASSAGES and (i == first or kept[i] != kept[used - 1]):
                kept[used] = kept[i]
                used += 1
        starts[row + 1] = used
    return starts, kept[:used].copy()


@allocating
def _winnowed(grams, kept, used):
    """Append the first hash of each window, in the order of the mixed hashes; return the new length.

    The hashes are kept as they were before the mixing: the mixed ones would all be small numbers. The hash of
    ten consecutive 3-grams is a rolling hash. Only the hashes of the latest window are in memory.
    """
    base, leaving = np.uint64(_BASE), np.uint64(1)
    for _ in range(_GRAMS):
        leaving *= base
    hashes, ranks = empty(WINDOW, np.uint64), empty(WINDOW, np.uint64)
    count = grams.size - _GRAMS + 1
    value = np.uint64(0)
    best = -1
    for i in range(grams.size):
        value = value * base + grams[i]
        if i >= _GRAMS:
            value -= grams[i - _GRAMS] * leaving
        last = i - _GRAMS + 1
        if last < 0:
            continue
        hashes[last % WINDOW] = value
        # Minus one, so that a passage of dropped 3-grams, whose mixed hash is 0, comes last.
        ranks[last % WINDOW] = mix(value) - np.uint64(1)
        if last < min(WINDOW, count) - 1:
            continue
        first = max(0, last - WINDOW + 1)
        before = best
        if best < first:
            best = _first_of(ranks, first, last)
        elif ranks[last % WINDOW] <= ranks[best % WINDOW]:
            best = last
        if best != before and hashes[best % WINDOW] != 0:
            kept[used] = hashes[best % WINDOW]
            used += 1
    return used


@inner
def _first_of(ranks, first, last):
    """Return the position of the smallest rank in a window; of equal ranks the last."""
    best = first
    for other in range(first + 1, last + 1):
        if ranks[other % WINDOW] <= ranks[best % WINDOW]:
            best = other
    return best
