"""jieba's hidden Markov model, compiled: it joins single ideographs to words that are not in the dictionary.

The sums are computed in jieba's order and precision. Equal and nearly equal sums occur in real text, so a
model with fewer digits, or one that adds in another order, sometimes cuts at other places.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros

FIRST_HAN = 0x4E00
LAST_HAN = 0x9FD5

_STATES = "BMES"  # begin, middle, end of a word, or a word of one character
_BEGIN, _MIDDLE, END, SINGLE = range(4)

Tables = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


class Path(NamedTuple):
    """Memory for the search of the likeliest states of n characters or fewer, made once for many searches.

    Attributes:
        sums: float64[2, 4], of one character in each state, and of the one before.
        came_from: int8[n, 4], the likeliest state before each state of a character.
        states: int8[n], what is found.
    """

    sums: NDArray[np.float64]
    came_from: NDArray[np.int8]
    states: NDArray[np.int8]


def load_tables(model: Any) -> Tables:
    """Return the log-probabilities of a `jieba.finalseg` module as arrays.

    Returns:
        (float64[4] of the first state, float64[4, 4] from state to state, float64[ideographs, 4] of the
        character in each state).
    """
    first = np.array([model.start_P[state] for state in _STATES])
    steps = np.array([[model.trans_P[a].get(b, model.MIN_FLOAT) for b in _STATES] for a in _STATES])
    characters = np.full((LAST_HAN - FIRST_HAN + 1, len(_STATES)), model.MIN_FLOAT)
    for column, state in enumerate(_STATES):
        for character, probability in model.emit_P[state].items():
            if FIRST_HAN <= ord(character) <= LAST_HAN:
                characters[ord(character) - FIRST_HAN, column] = probability
    return first, steps, characters


@kernel
def find_rejoined(codes, lengths, first, steps, characters):
    """Find the neighbouring tokens that jieba with HMM cuts another way than jieba without it.

    Args:
        codes: uint32[n], the code points of the text.
        lengths: int64[m], how many of them each token has.
        first: with `steps` and `characters` the result of `load_tables`.

    Returns:
        int64[k, 4], a row for each range of tokens, in order: its first token, its end, and the first token
        and the end of the run of single ideographs around it. A range of ideographs is one word. A range of
        ASCII letters, digits and signs has -1 in the last two columns, and must be cut again.
    """
    kinds, places = _sort_tokens(codes, lengths)
    found = empty((lengths.size // 2 + 1, 4), np.int64)
    path = new_path(codes.size)
    count = 0
    i = 0
    while i < lengths.size:
        j = i + 1
        while j < lengths.size and kinds[j] == kinds[i]:
            j += 1
        if kinds[i] == _HALF_WIDTH and j - i > 1:
            found[count, 0], found[count, 1], found[count, 2], found[count, 3] = i, j, -1, -1
            count += 1
        elif kinds[i] == _IDEOGRAPH and j - i > 1:
            find_states(codes, places[i], places[j], first, steps, characters, path)
            begin = i
            for k in range(i, j):
                if path.states[places[k]] in (END, SINGLE):
                    if k > begin:
                        found[count, 0], found[count, 1] = begin, k + 1
                        found[count, 2], found[count, 3] = i, j
                        count += 1
                    begin = k + 1
        i = j
    return found[:count]


_OTHER, _IDEOGRAPH, _HALF_WIDTH = range(3)


@allocating
def _sort_tokens(codes, lengths):
    """Return (int8[m] kinds, int64[m + 1] positions of the first characters) of the tokens."""
    kinds = zeros(lengths.size, np.int8)
    places = zeros(lengths.size + 1, np.int64)
    for i in range(lengths.size):
        begin = places[i]
        end = begin + lengths[i]
        places[i + 1] = end
        if end - begin == 1 and FIRST_HAN <= codes[begin] <= LAST_HAN:
            kinds[i] = _IDEOGRAPH
        elif end - begin == 1 and is_sign(codes[begin]):
            kinds[i] = _HALF_WIDTH
        else:
            kinds[i] = _HALF_WIDTH
            for code in codes[begin:end]:
                if not is_ascii_alphanumeric(code):
                    kinds[i] = _OTHER
                    break
    return kinds, places


@inner
def is_ascii_alphanumeric(code):
    return 48 <= code <= 57 or 65 <= code <= 90 or 97 <= code <= 122


@inner
def is_sign(code):
    """Return whether a character is one of ``#%&+-._``, which do not end a sentence in jieba."""
    return code in (35, 37, 38, 43, 45, 46, 95)


@inner
def find_states(codes, begin, end, first, steps, characters, path):
    """Find the likeliest states of ideographs, by Viterbi's algorithm.

    Of two states with equal sums the one with the later letter is chosen, as in jieba.

    Args:
        codes: the code points of a text, of which those from `begin` to `end` are ideographs.
        begin: where the first one is.
        end: after the last one, which is another than the first.
        first: with `steps` and `characters` the result of `load_tables`.
        path: of `new_path`, for as many characters as the text has; filled with the states from `begin` on.
    """
    sums, came_from, states = path
    for state in range(4):
        sums[0, state] = first[state] + characters[codes[begin] - FIRST_HAN, state]
    for t in range(1, end - begin):
        before, here, code = (t - 1) & 1, t & 1, codes[begin + t] - FIRST_HAN
        for state in range(4):
            if state in (_BEGIN, SINGLE):
                low, high = END, SINGLE
            else:
                low, high = _BEGIN, _MIDDLE
            low_sum = sums[before, low] + steps[low, state] + characters[code, state]
            high_sum = sums[before, high] + steps[high, state] + characters[code, state]
            came_from[t, state] = low if low_sum > high_sum else high
            sums[here, state] = max(low_sum, high_sum)
    last = (end - begin - 1) & 1
    state = END if sums[last, END] > sums[last, SINGLE] else SINGLE
    for t in range(end - begin - 1, 0, -1):
        states[begin + t] = state
        state = came_from[t, state]
    states[begin] = state


@allocating
def new_path(size):
    """Return what `find_states` needs for a text of so many characters: the sums, the ways and the states."""
    return Path(empty((2, 4), np.float64), empty((size, 4), np.int8), empty(size, np.int8))
