"""The numbers of short texts: two texts with different numbers at the same place are no duplicates.

Short texts of one form differ in little else: the dates on which two laws take effect, two days of the stock
market, two episodes of a series, the cases of two days. A few edits, or the common 3-grams, would make all of
them duplicates.

A number is a run of digits, also Arabic or Thai ones, or of Chinese numerals (2021, ٢٠٢١, 三十), compared
by its value: 3号楼 equals 三号楼. Its place is the character before it and the one after it. A number for
which the other text has none at the same place does not count, as where a digit was mistyped as a letter.
"""

from typing import Final

import numpy as np

from db_dedup.flow._arrays import place_in
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.compare.edit_distance import is_short
from db_dedup.flow.features.details import CHARACTERS, SECTIONS

_FIRST_DIGIT: Final = ord("0")
_LAST_DIGIT: Final = ord("9")
_UNITS: Final = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_ZEROS: Final = (
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0,
    0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0,
)  # fmt: skip
"""The zeros of other scripts, such as Arabic, Devanagari and Thai; the digits 1 to 9 follow each.

Complete up to U+FEFF; normalising turns full-width digits into ASCII. A list, as `unicodedata` depends on
the version of Python, and the same rows must give the same answer with each.
"""
_VALUES: Final = {
    **{chr(zero + n): n for zero in _ZEROS for n in range(10)},
    **{c: n for n, c in enumerate("零一二三四五六七八九")},
    "〇": 0,
    "两": 2,
    **_UNITS,
}
_NUMERALS: Final = np.array(sorted(map(ord, _VALUES)), np.uint64)
_MEANINGS: Final = np.array([_VALUES[chr(numeral)] for numeral in _NUMERALS.tolist()], np.int64)


@inner
def have_other_numbers(starts, values, a, b):
    """Return whether each of two short rows has a number where the other has only different numbers.

    Args:
        starts: int64[3n + 1], the starts of the details.
        values: uint64[m], the values of the details.
        a: number of the one row among the details.
        b: of the other.
    """
    # The set of the symbols comes before the symbols.
    one = values[starts[a * SECTIONS + CHARACTERS] + 1 : starts[a * SECTIONS + CHARACTERS + 1]]
    other = values[starts[b * SECTIONS + CHARACTERS] + 1 : starts[b * SECTIONS + CHARACTERS + 1]]
    return _has_other(one, other) and _has_other(other, one)


@kernel
def list_numbers(symbols):
    """Return uint64[k, 3]: for each number the symbol before it, the one after it, and its value.

    At an end of the text the symbol is 2^64 - 1, which no symbol is.

    Args:
        symbols: uint64[m], of a short text.
    """
    found, count = empty((symbols.size, 3), np.uint64), 0
    first, end = _next_number(symbols, np.int64(0))
    while first < end:
        found[count, 0], found[count, 1] = _before_and_after(symbols, first, end)
        found[count, 2] = np.uint64(_value_of(symbols, first, end))
        count += 1
        first, end = _next_number(symbols, end)
    return found[:count].copy()


@inner
def hash_numbers(symbols):
    """Return (uint64, uint64): a hash of the places of a short text's numbers, and one of their values.

    Two texts of which the first are equal and the second are not have other numbers (`have_other_numbers`).
    Both are 0 for a text without numbers, and for one with two numbers at the same place.
    """
    places, values = np.uint64(0), np.uint64(0)
    first, end = _next_number(symbols, np.int64(0))
    while first < end:
        start, stop = _next_number(symbols, end)
        while start < stop:
            if _are_between_equal(symbols, first, end, symbols, start, stop):
                return np.uint64(0), np.uint64(0)
            start, stop = _next_number(symbols, stop)
        before, after = _before_and_after(symbols, first, end)
        places = mix(mix(places ^ before) ^ after)
        values = mix(values ^ np.uint64(_value_of(symbols, first, end)))
        first, end = _next_number(symbols, end)
    return places, values


@inner
def _before_and_after(symbols, first, end):
    """Return the symbols before and after a number; 2^64 - 1, which no symbol is, at an end of the text."""
    before = symbols[first - 1] if first > 0 else ~np.uint64(0)
    after = symbols[end] if end < symbols.size else ~np.uint64(0)
    return before, after


@inner
def _has_other(one, other):
    """Return whether `one` has a number, and `other` has numbers at its place, but not this one."""
    first, end = _next_number(one, np.int64(0))
    while first < end:
        value, is_there, is_equal = _value_of(one, first, end), False, False
        start, stop = _next_number(other, np.int64(0))
        while start < stop and not is_equal:
            if _are_between_equal(one, first, end, other, start, stop):
                is_there = True
                is_equal = _value_of(other, start, stop) == value
            start, stop = _next_number(other, stop)
        if is_there and not is_equal:
            return True
        first, end = _next_number(one, end)
    return False


@inner
def _next_number(symbols, first):
    """Return where the next number begins and ends; twice the end of the text if there is none."""
    while first < symbols.size and not _is_numeral(symbols[first]):
        first += 1
    end = first
    while end < symbols.size and _is_numeral(symbols[end]):
        end += 1
    return first, end


@inner
def _value_of(symbols, first, end):
    """Return the value of a number, modulo 2^64."""
    total, section, digits = np.int64(0), np.int64(0), np.int64(0)
    for i in range(first, end):
        meaning = _meaning_of(symbols[i])
        if meaning < 10:
            digits = digits * 10 + meaning
        elif meaning < 10_000:
            section += max(digits, np.int64(1)) * meaning
            digits = np.int64(0)
        else:
            section += digits
            before = total if meaning > 10_000 else np.int64(0)
            total += max(before + section, np.int64(1)) * meaning - before
            section, digits = np.int64(0), np.int64(0)
    return total + section + digits


@inner
def _meaning_of(symbol):
    """Return the value of a digit or numeral, from 10 on that of a unit."""
    if symbol < _NUMERALS[0]:
        return np.int64(symbol) - _FIRST_DIGIT
    return _MEANINGS[place_in(_NUMERALS, symbol)]


@inner
def _are_between_equal(one, first, end, other, start, stop):
    """Return whether the symbols before and after two numbers are equal, or are the ends of both texts."""
    before = start == 0 if first == 0 else start > 0 and one[first - 1] == other[start - 1]
    if end == one.size:
        return before and stop == other.size
    return before and stop < other.size and one[end] == other[stop]


@inner
def _is_numeral(symbol):
    if symbol < _NUMERALS[0]:
        return _FIRST_DIGIT <= symbol <= _LAST_DIGIT
    place = place_in(_NUMERALS, symbol)
    return place < _NUMERALS.size and _NUMERALS[place] == symbol


@kernel
def which_have_other_numbers(starts, values, left, right):
    """Return bool[p]: the result of `have_other_numbers` of two short rows; False unless both are short."""
    result = zeros(left.size, np.bool_)
    for p in range(left.size):
        if is_short(starts, left[p]) and is_short(starts, right[p]):
            result[p] = have_other_numbers(starts, values, left[p], right[p])
    return result
