"""jieba's precise mode with HMM on code points: where its words begin and end, without a string for each.

`_rust_jieba` gives the same words as strings, and jieba itself defines them. A text is divided into sentences
of ideographs, ASCII letters, digits and some signs; any other character is a word of its own. Of all ways to
divide a sentence into words of the dictionary the likeliest one is taken: Viterbi's algorithm from the end to
the beginning, with jieba's sums in jieba's order, since equal and nearly equal sums occur in real text. What
is left as single characters goes through the HMM, or, if it is no ideograph, through a rule for numbers.
"""

import math
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._code_points import code_points
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty, full, zeros
from db_dedup.flow.text._hmm import (
    END,
    FIRST_HAN,
    LAST_HAN,
    SINGLE,
    find_states,
    is_ascii_alphanumeric,
    is_sign,
    load_tables,
    new_path,
)
from db_dedup.flow.text._jieba import import_jieba

_KNOWN_DICTIONARY: Final = "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8"
"""SHA-256 of `dict.txt` of jieba 0.42.1."""
_NEWLINE: Final = 10
_SPACE: Final = 32
_ZERO: Final = 48
_NINE: Final = 57
_PERCENT: Final = 37
_DOT: Final = 46
_BITS: Final = 21
_SPREAD: Final = 0x9E3779B97F4A7C15
_NO_WORD: Final = 1.0
"""The score of a beginning that is no word. The scores of words are logarithms, which are below zero."""


class Dictionary(NamedTuple):
    """jieba's dictionary as a hash table of all beginnings of its words, and the numbers of its HMM.

    The number of a beginning is its place in the table of s places.

    Attributes:
        first: int32[65536], by code point the number of the beginning of one character; -1 for none.
        keys: uint64[s], the number of the beginning without its last character, and that one; 0 if free.
        scores: float64[s], the logarithm of the word's share of the dictionary; 1 if it is no word.
        goes_on: bool[s], whether longer beginnings start with this one.
        single: the score of a character that is no word.
        states: float64[4], of the HMM, as the next two.
        steps: float64[4, 4].
        characters: float64[ideographs, 4].
    """

    first: NDArray[np.int32]
    keys: NDArray[np.uint64]
    scores: NDArray[np.float64]
    goes_on: NDArray[np.bool_]
    single: float
    states: NDArray[np.float64]
    steps: NDArray[np.float64]
    characters: NDArray[np.float64]


class Route(NamedTuple):
    """The likeliest words of a sentence of n characters, in arrays of n + 1 places or more.

    Attributes:
        scores: float64, the sum from each character on.
        ends: int64, where the word ends that begins with each character.
    """

    scores: NDArray[np.float64]
    ends: NDArray[np.int64]


@cache
def is_known_dictionary() -> bool:
    """Return whether the dictionary of the installed jieba is the one that db_dedup knows.

    Another one would give other words, and so other fingerprints, on this machine alone.
    """
    return sha256(_dictionary_file().read_bytes()).hexdigest() == _KNOWN_DICTIONARY


def _dictionary_file() -> Path:
    package = find_spec("jieba")
    assert package is not None  # noqa: S101 - we depend on it
    assert package.origin is not None  # noqa: S101
    return Path(package.origin).with_name("dict.txt")


@cache
def load_dictionary() -> Dictionary:
    """Read jieba's own dictionary, once a process."""
    text = _dictionary_file().read_text(encoding="utf-8")
    points = code_points(f"{text.strip()}\n")
    first, keys, frequencies, goes_on, total = _read(points)
    logarithms = np.zeros(int(frequencies.max()) + 1)
    different = np.flatnonzero(np.bincount(frequencies))[1:]
    # Python's logarithm, as in jieba: that of numpy may differ in the last bit.
    logarithms[different] = [math.log(frequency) for frequency in different.tolist()]
    log_total = math.log(total)
    scores = np.where(frequencies > 0, logarithms[frequencies] - log_total, _NO_WORD)
    tables = load_tables(import_jieba().finalseg)
    return Dictionary(first, keys, scores, goes_on, -log_total, *tables)


@kernel
def _read(points):
    """Read the lines `word frequency tag` into a table; return (first, keys, frequencies, goes_on, total).

    Of a word that is there twice the last frequency counts, and both count for the total, as in jieba.
    """
    letters, in_word = 0, True
    for point in points:
        if point in (_SPACE, _NEWLINE):
            in_word = point == _NEWLINE
        else:
            letters += in_word
    size = 64
    while size <= letters:
        size *= 2
    first = full(1 << 16, -1, np.int32)
    keys, frequencies = zeros(size, np.uint64), zeros(size, np.int64)
    goes_on = zeros(size, np.bool_)
    total, i = np.int64(0), 0
    while i < points.size:
        node = np.int64(-1)
        while points[i] != _SPACE:
            if node >= 0:
                goes_on[node] = True
            key = _key(node, points[i])
            place = _place(keys, key)
            keys[place] = key
            if node < 0 and points[i] < first.size:
                first[points[i]] = place
            node = place
            i += 1
        frequency = np.int64(0)
        i += 1
        while _ZERO <= points[i] <= _NINE:
            frequency = 10 * frequency + np.int64(points[i]) - _ZERO
            i += 1
        while points[i] != _NEWLINE:
            i += 1
        i += 1
        frequencies[node] = frequency
        total += frequency
    return first, keys, frequencies, goes_on, total


@inner
def _key(node, point):
    """Return the key of the beginning that a character makes of another one; -1 is the empty one."""
    return (np.uint64(node + 1) << np.uint64(_BITS)) | np.uint64(point)


@inner
def _place(keys, key):
    """Return the place of a key, or the free place where it belongs."""
    mixed = key * np.uint64(_SPREAD)
    # Unsigned: of a signed place numba asks whether it is negative.
    last = np.uint64(keys.size - 1)
    place = (mixed ^ (mixed >> np.uint64(32))) & last
    while keys[place] != 0 and keys[place] != key:
        place = (place + np.uint64(1)) & last
    return np.int64(place)


@kernel
def find_words(points, is_meaningful, dictionary):
    """Find the words of rows of text, each row with a newline at its end.

    Args:
        points: uint32[n], code points.
        is_meaningful: bool[c], by code point whether it is a letter, digit or ideograph.
        dictionary: of `load_dictionary`.

    Returns:
        (int64[m] where each word begins, int64[m] where it ends), both -1 at the end of a row. Tokens without
        a letter, digit or ideograph are left out.
    """
    begins, ends = empty(points.size, np.int64), empty(points.size, np.int64)
    route = Route(empty(points.size + 1, np.float64), empty(points.size + 1, np.int64))
    path = new_path(points.size)
    used, i = np.int64(0), np.int64(0)
    while i < points.size:
        end = i
        while end < points.size and _is_in_sentence(points[end]):
            end += 1
        if end > i:
            _find_route(points, i, end, dictionary, route)
            used = _write_words(points, i, end, dictionary, route, path, begins, ends, used)
            i = end
        else:
            if points[i] == _NEWLINE:
                begins[used], ends[used] = -1, -1
                used += 1
            elif is_meaningful[points[i]]:
                begins[used], ends[used] = i, i + 1
                used += 1
            i += 1
    return begins[:used].copy(), ends[:used].copy()


@inner
def _is_in_sentence(point):
    return _is_han(point) or is_ascii_alphanumeric(point) or is_sign(point)


@inner
def _is_han(point):
    return FIRST_HAN <= point <= LAST_HAN


@inner
def _find_route(points, begin, end, dictionary, route):
    """Write down the likeliest words of the sentence begin:end."""
    route.scores[end - begin] = 0.0
    for k in range(end - 1, begin - 1, -1):
        node = np.int64(dictionary.first[points[k]])
        best, best_end = dictionary.single + route.scores[k + 1 - begin], k + 1
        is_any, i = False, k + 1
        while node >= 0:
            score = dictionary.scores[node]
            if score != _NO_WORD:
                total = score + route.scores[i - begin]
                # Of equal sums the longer word is taken, as jieba does.
                if not is_any or total >= best:
                    best, best_end, is_any = total, i, True
            if i == end or not dictionary.goes_on[node]:
                break
            node = _longer(dictionary, node, points[i])
            i += 1
        route.scores[k - begin], route.ends[k - begin] = best, best_end


@inner
def _longer(dictionary, node, point):
    """Return the number of a beginning and one more character; -1 if no word begins so."""
    place = _place(dictionary.keys, _key(node, point))
    return place if dictionary.keys[place] != 0 else np.int64(-1)


@inner
def _write_words(points, first, last, dictionary, route, path, begins, ends, used):
    """Append the words of the sentence first:last, of which the route is known; return the new length."""
    begin = i = first
    while i < last:
        end = route.ends[i - first]
        if end - i > 1:
            used = _write_singles(points, begin, i, dictionary, path, begins, ends, used)
            begins[used], ends[used] = i, end
            used += 1
            begin = end
        i = end
    return _write_singles(points, begin, last, dictionary, path, begins, ends, used)


@inner
def _write_singles(points, begin, end, dictionary, path, begins, ends, used):
    """Append the words of neighbours that the route leaves as single characters; return the new length."""
    # A word of the dictionary that the route does not take stays apart.
    is_apart = end - begin > 1 and _is_word(points, begin, end, dictionary)
    i = begin
    while i < end:
        if is_apart or is_sign(points[i]):
            begins[used], ends[used] = i, i + 1
            used += not is_sign(points[i])
            i += 1
        elif _is_han(points[i]):
            j = i + 1
            while j < end and _is_han(points[j]):
                j += 1
            if j - i > 1:
                used = _write_new_words(points, i, j, dictionary, path, begins, ends, used)
            else:
                begins[used], ends[used] = i, j
                used += 1
            i = j
        else:
            j = _end_of_number(points, i, end)
            begins[used], ends[used] = i, j
            used += 1
            i = j
    return used


@inner
def _write_new_words(points, first, last, dictionary, path, begins, ends, used):
    """Append the words that the HMM makes of two ideographs or more; return the new length."""
    find_states(points, first, last, dictionary.states, dictionary.steps, dictionary.characters, path)
    begin = first
    for i in range(first, last):
        if path.states[i] in (END, SINGLE):
            begins[used], ends[used] = begin, i + 1
            used += 1
            begin = i + 1
    return used


@inner
def _is_word(points, begin, end, dictionary):
    """Return whether the characters begin:end are a word of the dictionary."""
    node, i = np.int64(dictionary.first[points[begin]]), begin + 1
    while node >= 0 and i < end:
        node = _longer(dictionary, node, points[i])
        i += 1
    return node >= 0 and dictionary.scores[node] != _NO_WORD


@inner
def _end_of_number(points, i, end):
    """Return the end of the letters and digits at i, with a fraction and a percent sign after them."""
    while i < end and is_ascii_alphanumeric(points[i]):
        i += 1
    if i + 1 < end and points[i] == _DOT and _ZERO <= points[i + 1] <= _NINE:
        i += 2
        while i < end and _ZERO <= points[i] <= _NINE:
            i += 1
    return i + 1 if i < end and points[i] == _PERCENT else i
