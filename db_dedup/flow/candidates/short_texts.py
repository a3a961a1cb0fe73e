"""Prefix filtering (Chaudhuri, Ganti and Kaushik 2006): finds all pairs of short texts, without chance.

If two sets of n and m grams share s of them, then the first n - s + 1 of the one and the first m - s + 1 of
the other, in any order that is the same for both, include a shared gram. So only these first grams of a row,
its prefix, are its hashes.

Texts of at most 58 character 3-grams have a prefix of them. s is the least number that a text of m can share
with any other such text by the bound of the measure. The whole prefix of a longer text would be too long. One
of up to 140 has eight of its rarer grams, so that it shares one with a similar shorter text nearly always.

Two short texts are also duplicates by their edit similarity. k edits in the longer one of M symbols leave at
least M - q + 1 - q * k of its q-grams. So short texts have a prefix for these, too; most of its hashes are
the same. For each M the largest q of three that leaves a shared gram is used, by both rows of a pair.

The order is frozen in the recipe. First come the grams that are not among the most common ones of the table,
in the order of their mixed hashes, then the common ones, from the rarest on. In this order few rows share a
hash by chance. Any other order finds the same pairs.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import bring_forward
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.features.characters import MOST_EDITS, SHORT

MOST_HASHES: Final = 36
"""The most hashes of a row with a prefix: with so many, one in common is enough (`least_in_common`)."""
MOST_OF_FEW: Final = 24
"""The most hashes of a row of at most `FEW_GRAMS`."""

FEW_GRAMS: Final = 40
MOST_GRAMS: Final = 58
"""A text with more 3-grams has no whole prefix: bands and passage hashes find its pairs."""
MOST_OF_LONGER: Final = 140
"""A text with more 3-grams is a duplicate of one with a prefix only if it contains most of that one."""
_HASHES_OF_LONGER: Final = 8
_RARER_SHARE: Final = 0.6
"""The eight are of this rarer share of the 3-grams, the first in the order of their mixed hashes. The eight
rarest would often be those that an edit has made."""

_SIZES: Final = (3, 2, 1)
_BITS: Final = 21
_STEP: Final = 0x9E3779B97F4A7C15
_COMMON: Final = 1 << 63


class Prefixes(NamedTuple):
    """What decides the prefix of a row.

    Attributes:
        of_edits: int64[4, 31]: how many q-grams of a short text of so many symbols are hashes.
        of_measure: int64[59]: how many 3-grams of a text with so many are hashes.
        common: uint32[c], ascending: the upper halves of the hashes of the common 3-grams.
        ranks: int64[c]: the place of each in the order, from the rarest on.
    """

    of_edits: NDArray[np.int64]
    of_measure: NDArray[np.int64]
    common: NDArray[np.uint32]
    ranks: NDArray[np.int64]


def make_prefixes(
    threshold: float, least_shared: Callable[[int, int], int], common: NDArray[np.uint32]
) -> Prefixes:
    """Return the prefixes of a recipe.

    Args:
        threshold: the edit similarity of duplicates, above 0.
        least_shared: (3-grams of the one row, of the other) -> how many they share at least if the measure
            confirms them.
        common: uint32[c], the upper halves of the hashes of the common 3-grams, from the rarest on.
    """
    ranks = np.argsort(common, kind="stable")
    sizes = range(1, MOST_GRAMS + 1)
    least = [min(s for n in sizes if (s := least_shared(m, n)) <= min(m, n)) for m in sizes]
    of_measure = np.array([0, *(m - max(1, s) + 1 for m, s in zip(sizes, least, strict=True))], np.int64)
    return Prefixes(_sizes_of_edits(threshold, of_measure), of_measure, common[ranks], ranks)


def find_short_hashes(
    starts: NDArray[np.int64],
    symbols: NDArray[np.uint64],
    gram_starts: NDArray[np.int64],
    grams: NDArray[np.uint64],
    prefixes: Prefixes,
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the hashes of texts with a prefix, and of the texts that may be compared with them.

    Args:
        starts: int64[n + 1], the rows' slices of symbols.
        symbols: uint64[m], of short texts, as `features.characters` gives them; others have none.
        gram_starts: int64[n + 1], the rows' slices of character 3-grams.
        grams: uint64[g], distinct within a row.
        prefixes: of the recipe.

    Returns:
        (int64[n + 1] the rows' slices, uint64[k] hashes, distinct within a row).
    """
    found: tuple[NDArray[np.int64], NDArray[np.uint64]] = _find(
        starts, symbols, gram_starts, grams, *prefixes
    )
    return found


def first_hashes(
    starts: NDArray[np.int64], values: NDArray[np.uint64], room: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (starts, values) with at most so many values of each row: the first in the order of winnowing.

    The first passage of a text is in the sketch of every text that contains it, whatever is around it.

    Args:
        starts: int64[n + 1], the rows' slices of the values.
        values: uint64[m], distinct within a row.
        room: int64[n].
    """
    found: tuple[NDArray[np.int64], NDArray[np.uint64]] = _first_hashes(starts, values, room)
    return found


def _sizes_of_edits(threshold: float, of_measure: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[4, 31]: how many q-grams of a text of so many symbols are hashes, for q from 1 to 3.

    A low threshold leaves grams of three or two symbols in few texts. Then shorter grams are used for all of
    them, since a row that has several sizes of grams would have too many hashes.
    """
    for first in range(len(_SIZES)):
        sizes = _prefix_sizes(threshold, _SIZES[first:])
        # A text has at most as many 3-grams as symbols.
        if (sizes.sum(axis=0) + of_measure[: SHORT + 1]).max() <= MOST_HASHES:
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


@kernel
def _find(starts, symbols, gram_starts, grams, of_edits, of_measure, common, ranks):
    count = starts.size - 1
    new_starts = zeros(count + 1, np.int64)
    hashes = empty(count * MOST_HASHES, np.uint64)
    some, places = empty(MOST_OF_LONGER, np.uint64), empty(MOST_OF_LONGER, np.uint64)
    used = np.int64(0)
    for row in range(count):
        first = used
        own = grams[gram_starts[row] : gram_starts[row + 1]]
        # The set of symbols comes before the symbols.
        text = symbols[starts[row] + 1 : starts[row + 1]]
        for q in range(of_edits.shape[0] - 1, 0, -1):
            size = of_edits[q, text.size]
            if size > 0:
                _write_grams(text, q, some)
                _find_places(some, text.size - q + 1, common, ranks, places)
                bring_forward(some, places, text.size - q + 1, size)
                used = _append(some, size, hashes, first, used)
        if 0 < own.size <= MOST_OF_LONGER:
            for i in range(own.size):
                some[i] = own[i]
            _find_places(some, own.size, common, ranks, places)
            if own.size <= MOST_GRAMS:
                size = min(of_measure[own.size], MOST_HASHES - (used - first))
                bring_forward(some, places, own.size, size)
            else:
                rarer = np.int64(_RARER_SHARE * own.size)
                bring_forward(some, places, own.size, rarer)
                for i in range(rarer):
                    places[i] = mix(some[i])
                size = _HASHES_OF_LONGER
                bring_forward(some, places, rarer, size)
            used = _append(some, size, hashes, first, used)
        new_starts[row + 1] = used
    return new_starts, hashes[:used].copy()


@inner
def _find_places(some, count, common, ranks, places):
    """Write the places of some grams in the order: those of rare grams are below those of common ones."""
    for i in range(count):
        upper = some[i] >> np.uint64(32)
        first, last = 0, common.size
        while first < last:
            middle = (first + last) // 2
            if np.uint64(common[middle]) < upper:
                first = middle + 1
            else:
                last = middle
        places[i] = mix(some[i]) & ~np.uint64(_COMMON)
        if first < common.size and np.uint64(common[first]) == upper:
            places[i] = np.uint64(_COMMON) | np.uint64(ranks[first])


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
def _append(some, size, hashes, first, used):
    """Append grams that the row does not have yet, from `first` on; return the new length."""
    for value in some[:size]:
        is_new = True
        for j in range(first, used):
            is_new &= hashes[j] != value
        if is_new:
            hashes[used] = value
            used += 1
    return used


@kernel
def _first_hashes(starts, values, room):
    new_starts = zeros(starts.size, np.int64)
    kept = empty(values.size, np.uint64)
    used = 0
    for row in range(starts.size - 1):
        own = values[starts[row] : starts[row + 1]]
        for i in range(own.size):
            before = 0
            if own.size > room[row]:
                for j in range(own.size):
                    before += mix(own[j]) - np.uint64(1) < mix(own[i]) - np.uint64(1)
            if before < room[row]:
                kept[used] = own[i]
                used += 1
        new_starts[row + 1] = used
    return new_starts, kept[:used].copy()
