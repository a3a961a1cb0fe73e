"""Passages of a text by winnowing (Schleimer, Wilkerson and Aiken 2003): what a quotation is found by.

Of every twelve runs of twelve characters in a row the one whose hash comes first is kept. Which one that is
depends on nothing else, so two texts that have any 23 characters in common, wherever they stand and however
much longer one of them is, keep a passage in common: a short petition inside a longer one is always proposed.
"""

from collections.abc import Sequence
from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._mix import mix

PASSAGE_CHARACTERS: Final = 12
WINDOW: Final = 12
MOST_PASSAGES: Final = 2000
"""Of a longer text (some 13,000 characters) those with the smallest hashes are kept."""

_GRAMS: Final = PASSAGE_CHARACTERS - 2
_ROW_END: Final = 1
_BASE: Final = 0x9E3779B97F4A7C15


def find_passages(
    streams: Sequence[NDArray[np.uint64]], row_count: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Hashes of the passages that are kept of each row.

    Args:
        streams: for each text column what `hash_grams` gave: runs of three characters, row after row. A
            passage does not reach from one column into the next.
        row_count: n.

    Returns:
        (int64[n + 1] the rows' slices, uint64[m] passages, ascending and distinct within a row). A column of
        fewer than twelve characters has none, one of no more than 23 has one.
    """
    stream = streams[0] if len(streams) == 1 else np.concatenate([np.empty(0, np.uint64), *streams])
    firsts = np.cumsum([0, *map(len, streams)])[:-1].astype(np.int64)
    starts, passages = _find(stream, firsts, row_count)
    return starts, passages


@nb.njit(cache=True, nogil=True)
def _find(stream, firsts, row_count):  # type: ignore[no-untyped-def]
    starts = np.zeros(row_count + 1, np.int64)
    kept = np.empty(stream.size, np.uint64)
    positions = firsts.copy()
    used = 0
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
        own = np.unique(kept[first:used])[:MOST_PASSAGES]
        kept[first : first + own.size] = own
        used = first + own.size
        starts[row + 1] = used
    return starts, kept[:used].copy()


@nb.njit(cache=True, nogil=True)
def _winnowed(grams, kept, used):  # type: ignore[no-untyped-def]
    """Put the first hash, in the order of their mixes, of each window behind those that are kept; how many
    there are by then. What is kept is not mixed: the firsts of all windows are small numbers.

    A hash of ten grams in a row is rolled from one to the next. Of those only the latest window is in memory.
    """
    base, leaving = np.uint64(_BASE), np.uint64(1)
    for _ in range(_GRAMS):
        leaving *= base
    hashes, ranks = np.empty(WINDOW, np.uint64), np.empty(WINDOW, np.uint64)
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
        # One less: what says nothing, whose mix is 0, comes last.
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


@nb.njit(cache=True, nogil=True)
def _first_of(ranks, first, last):  # type: ignore[no-untyped-def]
    """Which of the hashes of a window comes first; of equal ones the last."""
    best = first
    for other in range(first + 1, last + 1):
        if ranks[other % WINDOW] <= ranks[best % WINDOW]:
            best = other
    return best
