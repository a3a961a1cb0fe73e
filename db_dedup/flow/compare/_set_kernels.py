"""The compiled kernels of `feature_sets`: sets of features are packed, and compared with those of asked rows.

`packed` is an array of sets, of which each is a head of 16 bits and a Rice code for each place. The set of a
short row is a head alone.
"""

from typing import Final

import numpy as np

from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates._bits import (
    BITS_AT_ONCE,
    get_bits,
    get_loaded,
    get_rice,
    put_bits,
    put_unary,
    zeros_before_one,
)
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.compare.kernels import least_shared

MOST_FEATURES: Final = 4_000
"""A row with more has no set: it would be large, and such a row is rare."""

_LEAST_PLACES_A_FEATURE: Final = 9
_FEW_BITS: Final = np.int64(10)
_LEAST_FEW_PLACES_A_FEATURE: Final = 12
"""How many of 2**10 places a feature has at least; otherwise there are twice as many. A text of a thousand
characters has features with more than half of them, so that a set of small texts would rule out little."""
_COUNT_BITS: Final = np.int64(16)
"""The bits of the head of a set. From the lowest bit on these are: whether the features are 3-grams; 13 bits
for their number; whether their places are bits of their hashes; and whether 2**10 places are used only where
a feature has 12 of them or, if the places are no such bits, whether a feature has 12 places instead of 5."""
_KIND_BITS: Final = np.int64(1)
_OF_BITS: Final = np.int64(1 << 14)
_MORE: Final = np.int64(1 << 15)
_SIZE: Final = np.int64((1 << 14) - 2)
_SHIFT: Final = np.int64(3)
_COARSE_SHIFT: Final = np.int64(2)
"""The shift of the Rice code of a set with 5 places a feature."""
_MOST_BITS: Final = 16
"""The bits of a place in a set of `MOST_FEATURES`."""
_MOST_WORDS: Final = (1 << _MOST_BITS) // 64 + 1
"""Enough words for a bit for each place of a set."""
# All quotients of a set together are less than two bits a feature; the end and the remainder of each are four
# or five.
_MOST_BYTES_A_FEATURE: Final = 1


@kernel
def bitmaps(starts, hashes, packed, begins, ends):
    """Return the places of the features of n rows, as bitmaps, for each number of bits that a set has.

    Args:
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], features.
        packed: uint8[p], sets.
        begins: int64[r], where each set begins.
        ends: int64[r], where it ends.

    Returns:
        (uint64[w] the bitmaps of all rows for one number of bits after the other, int64[_MOST_BITS + 1] where
        those of each number begin).
    """
    in_use = zeros(_MOST_BITS + 1, np.bool_)
    for row in range(begins.size):
        if begins[row] < ends[row]:
            head = _head_of(packed, begins[row] * 8, ends[row] * 8)
            in_use[_bits_in(head)] |= head & _OF_BITS != 0
    rows, firsts, total = starts.size - 1, zeros(in_use.size, np.int64), np.int64(0)
    for bits in range(in_use.size):
        firsts[bits] = total
        if in_use[bits]:
            total += rows * _words_of(np.int64(1) << bits)
    found = zeros(total, np.uint64)
    for bits in range(in_use.size):
        if in_use[bits]:
            words = _words_of(np.int64(1) << bits)
            for row in range(rows):
                own = firsts[bits] + row * words
                for hashed in hashes[starts[row] : starts[row + 1]]:
                    place = _bits_of(hashed, bits)
                    found[own + (place >> 6)] |= np.uint64(1) << np.uint64(place & 63)
    return found, firsts


@inner
def _head_of(packed, begin, end):
    """Return the head of a set.

    Raises:
        ValueError: the set is damaged.
    """
    head = np.int64(get_bits(packed, begin, end, _COUNT_BITS))
    size = (head & _SIZE) >> _KIND_BITS
    if size < 1 or size > MOST_FEATURES:
        raise ValueError("a piece of the index ends early")
    return head


@inner
def _words_of(places):
    return (places + 63) >> 6


@inner
def _bits_in(head):
    """Return how many bits the places of a set have by its head, if they are bits of hashes."""
    size, bits = (head & _SIZE) >> _KIND_BITS, np.int64(0)
    while (np.int64(1) << bits) < _LEAST_PLACES_A_FEATURE * size:
        bits += 1
    is_crowded = bits == _FEW_BITS and (np.int64(1) << bits) < _LEAST_FEW_PLACES_A_FEATURE * size
    return bits + np.int64(is_crowded and head & _MORE != 0)


@inner
def _shift_in(head):
    """Return the shift of the Rice code of such a set; a larger one pays from 16 places a feature on."""
    is_sparse = (np.int64(1) << _bits_in(head)) >= ((head & _SIZE) >> _KIND_BITS) << 4
    return _SHIFT + np.int64(is_sparse and head & _MORE != 0)


@inner
def _bits_of(hashed, bits):
    """Return the first bits of a hash: at least one, so that the shift is less than 64."""
    return np.int64(hashed >> np.uint64(64 - bits))


@inner
def _place_of(hashed, places):
    """Return the place of a feature: features with ascending hashes have ascending places."""
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(places)) >> np.uint64(32))


@kernel
def pack(starts, hashes, has_set, is_short, of_grams):
    """Return (uint8[m] all sets, int64[n] where each ends)."""
    rows = has_set.size
    packed = zeros(hashes.size * _MOST_BYTES_A_FEATURE + 4 * rows + 16, np.uint8)
    ends = empty(rows, np.int64)
    used = np.int64(0)
    for row in range(rows):
        if has_set[row]:
            head = (starts[row + 1] - starts[row]) << _KIND_BITS | np.int64(of_grams)
            if is_short[row]:
                used = put_bits(packed, used * 8, np.uint64(head), _COUNT_BITS) // 8
                ends[row] = used
                continue
            head |= _OF_BITS | _MORE
            place = put_bits(packed, used * 8, np.uint64(head), _COUNT_BITS)
            before, bits, shift = np.int64(-1), _bits_in(head), _shift_in(head)
            for i in range(starts[row], starts[row + 1]):
                gap = _bits_of(hashes[i], bits) - before - 1
                if gap >= 0:
                    place = put_unary(packed, place, gap >> shift)
                    place = put_bits(packed, place, np.uint64(gap), shift)
                    before += gap + 1
            used = (place + 7) // 8
        ends[row] = used
    return packed[:used].copy(), ends


@kernel
def compare(
    starts,
    hashes,
    is_short,
    asked,
    rows,
    packed,
    set_begins,
    set_ends,
    measure,
    threshold,
    of_grams,
    maps,
    firsts,
    first_row,
    end_row,
    may,
):
    """Compare the set of each candidate with all the rows that it is a candidate of.

    A set is unpacked once, and only as far as these comparisons need: the first places often rule a pair out.

    Args:
        starts: as for `bitmaps`, like `hashes` and `packed`.
        is_short: bool[n], which of the n rows are short.
        asked: int64[p], positions of the asked rows.
        rows: int64[p], positions of their candidates among the sets.
        set_begins: as `begins` for `bitmaps`.
        set_ends: as `ends` there.
        measure: of the rule.
        threshold: of the rule.
        of_grams: the measure compares 3-grams, not words.
        maps: by `bitmaps`, like `firsts`.
        first_row: only pairs with candidates from this one on are compared.
        end_row: only those before this one.
        may: bool[p], set to False for each pair that is ruled out.
    """
    order, whose, ends = _by_row(asked, rows, first_row, end_row)
    bits, unpacked = zeros(_MOST_WORDS, np.uint64), empty(2, np.int64)
    next_pair = np.int64(0)
    for row in range(first_row, end_row):
        begin, end = set_begins[row] * 8, set_ends[row] * 8
        first_pair, next_pair = next_pair, ends[row - first_row]
        if begin == end or first_pair == next_pair:
            continue
        head = _head_of(packed, begin, end)
        if head & 1 != np.int64(of_grams):
            continue
        size = (head & _SIZE) >> _KIND_BITS
        places, shift, first_map = size * 5, _COARSE_SHIFT, np.int64(-1)
        if head & _OF_BITS:
            bits_of_place = _bits_in(head)
            places, shift, first_map = np.int64(1) << bits_of_place, _shift_in(head), firsts[bits_of_place]
        elif head & _MORE:
            places, shift = size * 12, _SHIFT
        unpacked[0], unpacked[1] = begin + _COUNT_BITS, -1
        for i in range(first_pair, next_pair):
            one = whose[i]
            first, last = starts[one], starts[one + 1]
            least = least_shared(measure, threshold, last - first, size)
            if end - begin == _COUNT_BITS:
                may[order[i]] = is_short[one] or least <= min(last - first, size)
                continue
            own_map = first_map
            if first_map >= 0:
                own_map += one * _words_of(places)
            may[order[i]] = _may_share(
                hashes, first, last, maps, own_map, packed, end, shift, places, size, least, bits, unpacked
            )
        for word in range((min(unpacked[1], places) >> 6) + 1):
            bits[word] = np.uint64(0)


@allocating
def _by_row(asked, rows, first_row, end_row):
    """Sort the pairs with the rows from the first one to the one before the end.

    Returns:
        (int64[q] these pairs row by row, int64[q] their asked rows, int64[r] where those of each row end).
    """
    ends = zeros(end_row - first_row, np.int64)
    for row in rows:
        if first_row <= row < end_row:
            ends[row - first_row] += 1
    for row in range(1, ends.size):
        ends[row] += ends[row - 1]
    count = ends[-1] if ends.size > 0 else np.int64(0)
    order, whose, free = empty(count, np.int64), empty(count, np.int64), ends.copy()
    for pair in range(rows.size - 1, -1, -1):
        if first_row <= rows[pair] < end_row:
            place = free[rows[pair] - first_row] - 1
            free[rows[pair] - first_row] = place
            order[place], whose[place] = pair, asked[pair]
    return order, whose, ends


@inner
def _unpack_word(packed, end, shift, places, word, bits, unpacked):
    """Set the bit of each place that a set has in a word, and in those before it.

    Args:
        packed: uint8[m], sets.
        end: where the codes of this one end, in bits.
        shift: of its codes.
        places: that there are.
        word: the places are those below 64 * (word + 1).
        bits: uint64[w], 0 for each place that is not unpacked.
        unpacked: int64[2]: where the codes begin that are left, and the last place whose bit is set. It is
            past all places when no code is left.

    Raises:
        ValueError: the set is damaged.
    """
    place, at = unpacked
    until = ((word + 1) << 6) - 1
    while at < until:
        if not _has_code(packed, place, end):
            at = max(places, until)
            break
        value, left = get_loaded(packed, place), min(BITS_AT_ONCE, end - place)
        zeros = zeros_before_one(value)
        if zeros + 1 + shift > left:
            gap, place = get_rice(packed, place, end, shift)
            at = _mark(at + 1 + gap, places, bits)
            continue
        # Several codes of one load: to load for each would take longer than all the rest.
        before = left
        while zeros + 1 + shift <= left:
            rest = (value >> np.uint64(zeros + 1)) & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
            at = _mark(at + 1 + ((zeros << shift) | np.int64(rest)), places, bits)
            value >>= np.uint64(zeros + 1 + shift)
            left -= zeros + 1 + shift
            zeros = zeros_before_one(value)
        place += before - left
    unpacked[0], unpacked[1] = place, at


@inner
def _mark(at, places, bits):
    if at >= places:
        raise ValueError("a piece of the index ends early")
    bits[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
    return at


@inner
def _has_code(packed, place, end):
    """Return whether another code follows: each has a 1, and after the last one there are at most seven 0."""
    return place + 7 < end or (place < end and get_bits(packed, place, end, end - place) != 0)


@inner
def _may_share(hashes, first, last, maps, own_map, packed, end, shift, places, size, least, bits, unpacked):
    """Return whether a row may share so many features with a set.

    A feature whose place the set does not have is none of the set's. A place of the set where the row has no
    feature is that of a feature that the row does not have.

    Args:
        hashes: uint64[m], features.
        first: of the row; they are ascending.
        last: the one after its last one.
        maps: by `bitmaps`.
        own_map: where that of the row begins; below 0 for a set of a former version.
        size: how many features the set has.
        least: how many must be shared.
        packed: as for `_unpack_word`, like `end`, `shift`, `places`, `bits` and `unpacked`.
    """
    spare, spare_of_set = last - first - least, size - least
    if spare < 0 or spare_of_set < 0:
        return False
    i = first
    for word in range(_words_of(places)):
        if unpacked[1] < (word << 6) + 63:
            _unpack_word(packed, end, shift, places, word, bits, unpacked)
        mine = np.uint64(0)
        if own_map >= 0:
            mine = maps[own_map + word]
            spare -= popcount(mine & ~bits[word])
        else:
            while i < last and _place_of(hashes[i], places) >> 6 == word:
                bit = np.uint64(1) << np.uint64(_place_of(hashes[i], places) & 63)
                mine |= bit
                spare -= np.int64(bits[word] & bit == 0)
                i += 1
        spare_of_set -= popcount(bits[word] & ~mine)
        if spare < 0 or spare_of_set < 0:
            return False
    return True
