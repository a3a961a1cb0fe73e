"""Prefix filtering (Chaudhuri, Ganti and Kaushik 2006): finds all pairs of short texts, without chance.

Two short texts that are duplicates by their edit similarity share a certain number of q-grams: k edits in the
longer one of M symbols leave at least M - q + 1 - q * k of its grams. If two sets of n and m grams share s
of them, then the first n - s + 1 of the one and the first m - s + 1 of the other, in any order that is the
same for both, include a shared gram. So only these first grams of a row are its hashes. The order is that of
mixed hashes: it depends on no table. For each M the largest q of three that leaves a shared gram is used, by
both rows of a pair.

Two short texts are also duplicates by their character 3-grams, if their Jaccard similarity is at least one
half, or if one is part of the other and has at least 0.41 of its 3-grams. Then they share 0.41 of the larger
set or more. So of m 3-grams of a short text the first m - s + 1 are its hashes, too, where s is the least
number that it can share as the larger one; most of them are the same hashes. A longer text that may be
compared with short ones has its first few 3-grams as hashes besides its others: so it shares a hash with a
similar short text nearly always.
"""

import math
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow.features.characters import MOST_EDITS, SHORT

MOST_HASHES: Final = 36
"""The most hashes of a short text: with so many, one in common is enough (`sketches.least_in_common`)."""

_SIZES: Final = (3, 2, 1)
MOST_GRAMS: Final = 58
"""A text with more 3-grams is seldom a duplicate of a short one: their Jaccard similarity is below one half,
and it is too long for a part of it to count as its duplicate."""
_HASHES_OF_LONGER: Final = 8
_SMALLEST_PART: Final = 6
_SHARE_OF_PART: Final = 0.41
"""The limits of `char_overlap`: a part of a text is its duplicate with so many 3-grams, and such a share."""
_ROUNDING: Final = 1e-6
_BITS: Final = 21
_STEP: Final = 0x9E3779B97F4A7C15


def find_short_hashes(
    starts: NDArray[np.int64],
    symbols: NDArray[np.uint64],
    gram_starts: NDArray[np.int64],
    grams: NDArray[np.uint64],
    threshold: float,
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the hashes of short texts and of the texts that may be compared with them.

    Args:
        starts: int64[n + 1], the rows' slices of symbols.
        symbols: uint64[m], of short texts, as `features.characters` gives them; others have none.
        gram_starts: int64[n + 1], the rows' slices of character 3-grams.
        grams: uint64[g], distinct within a row.
        threshold: the edit similarity of duplicates, above 0.

    Returns:
        (int64[n + 1] the rows' slices, uint64[k] hashes, distinct within a row).
    """
    found: tuple[NDArray[np.int64], NDArray[np.uint64]] = _find(
        starts, symbols, gram_starts, grams, prefix_sizes(threshold)
    )
    return found


@cache
def prefix_sizes(threshold: float) -> NDArray[np.int64]:
    """Return int64[4, 31]: how many q-grams of a text of so many symbols are hashes, for q from 1 to 3.

    A low threshold leaves grams of three or two symbols in few texts. Then shorter grams are used for all of
    them, since a row that has several sizes of grams would have too many hashes.
    """
    for first in range(len(_SIZES)):
        sizes = _prefix_sizes(threshold, _SIZES[first:])
        of_grams = np.array([_first_grams(max(0, length - 2)) for length in range(SHORT + 1)])
        if (sizes.sum(axis=0) + of_grams).max() <= MOST_HASHES:
            break
    return sizes


def _prefix_sizes(threshold: float, gram_sizes: tuple[int, ...]) -> NDArray[np.int64]:
    sizes = np.zeros((max(_SIZES) + 1, SHORT + 1), np.int64)
    for longer in range(1, SHORT + 1):
        # The same arithmetic as that of the rule, so that both round alike.
        possible = range(min(longer, MOST_EDITS) + 1)
        edits = max(k for k in possible if 1.0 - k / longer >= threshold)
        for q in gram_sizes:
            shared = longer - q + 1 - q * edits
            if shared < 1:
                continue
            for length in range(longer - edits, longer + 1):
                sizes[q, length] = max(sizes[q, length], length - q + 1 - shared + 1)
            break
    return sizes


def _first_grams(size):
    """Return how many of the 3-grams of a short text are hashes."""
    least_of_part = max(_SMALLEST_PART, math.ceil(_SHARE_OF_PART * size - _ROUNDING))
    least = min((size + 1) // 2, least_of_part)
    return size - least + 1 if size > 0 else 0


_compiled_first_grams = inner(_first_grams)


@kernel
def _find(starts, symbols, gram_starts, grams, sizes):
    count = starts.size - 1
    new_starts = np.zeros(count + 1, np.int64)
    hashes = np.empty(count * MOST_HASHES, np.uint64)
    some = np.empty(max(SHORT, MOST_GRAMS), np.uint64)
    used = np.int64(0)
    for row in range(count):
        first = used
        own = grams[gram_starts[row] : gram_starts[row + 1]]
        # The set of symbols comes before the symbols.
        text = symbols[starts[row] + 1 : starts[row + 1]]
        for q in range(sizes.shape[0] - 1, 0, -1):
            size = sizes[q, text.size]
            if size > 0:
                _write_grams(text, q, some)
                used = _append_first(some, text.size - q + 1, size, hashes, first, used)
        if 0 < own.size <= MOST_GRAMS:
            for i in range(own.size):
                some[i] = own[i]
            size = _HASHES_OF_LONGER if text.size == 0 else _compiled_first_grams(own.size)
            size = min(size, own.size, MOST_HASHES - (used - first))
            used = _append_first(some, own.size, size, hashes, first, used)
        new_starts[row + 1] = used
    return new_starts, hashes[:used].copy()


@inner
def _write_grams(text, q, some):
    """Write the hashes of all q-grams; the second one of two equal grams gets a hash of its own."""
    for i in range(text.size - q + 1):
        packed, is_packed = np.uint64(0), q == 3
        for symbol in text[i : i + q]:
            packed = (packed << np.uint64(_BITS)) | (symbol + np.uint64(1))
            is_packed &= symbol >> np.uint64(_BITS) == 0
        value = mix(packed)
        if not is_packed:
            value = np.uint64(q)
            for symbol in text[i : i + q]:
                value = mix(value ^ symbol) + np.uint64(_STEP)
        some[i] = value
    # From the end, so that the grams before the one that changes are as they were.
    for i in range(text.size - q, 0, -1):
        before = 0
        for j in range(i):
            before += some[j] == some[i]
        if before > 0:
            some[i] = mix(some[i] + np.uint64(before) * np.uint64(_STEP))


@inner
def _append_first(some, count, size, hashes, first, used):
    """Append the `size` first of some grams in the order of their mixed hashes; return the new length.

    A hash that the row has already, from `first` on, is left out.
    """
    for i in range(size):
        best = i
        for j in range(i + 1, count):
            if mix(some[j]) < mix(some[best]):
                best = j
        value = some[best]
        some[best] = some[i]
        some[i] = value
        is_new = True
        for j in range(first, used):
            is_new &= hashes[j] != value
        if is_new:
            hashes[used] = value
            used += 1
    return used
