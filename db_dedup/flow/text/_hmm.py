"""jieba's hidden Markov model, compiled: it joins single ideographs to words that are not in the dictionary.

The sums are computed in jieba's order and precision. Equal and nearly equal sums occur in real text, so a
model with fewer digits, or one that adds in another order, sometimes cuts at other places.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel

FIRST_HAN = 0x4E00
LAST_HAN = 0x9FD5

_STATES = "BMES"  # begin, middle, end of a word, or a word of one character
_BEGIN, _MIDDLE, END, SINGLE = range(4)

Tables = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


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
    found = np.empty((lengths.size // 2 + 1, 4), np.int64)
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
            states = likeliest_states(codes[places[i] : places[j]], first, steps, characters)
            begin = 0
            for k in range(j - i):
                if states[k] in (END, SINGLE):
                    if k > begin:
                        found[count, 0], found[count, 1] = i + begin, i + k + 1
                        found[count, 2], found[count, 3] = i, j
                        count += 1
                    begin = k + 1
        i = j
    return found[:count]


_OTHER, _IDEOGRAPH, _HALF_WIDTH = range(3)


@inner
def _sort_tokens(codes, lengths):
    """Return (int8[m] kinds, int64[m + 1] positions of the first characters) of the tokens."""
    kinds = np.zeros(lengths.size, np.int8)
    places = np.zeros(lengths.size + 1, np.int64)
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
def likeliest_states(codes, first, steps, characters):
    """Return the likeliest states, by Viterbi's algorithm.

    Of two states with equal sums the one with the later letter is chosen, as in jieba. The sums are written
    out: numba compiles an operation on whole arrays by way of `ast.parse`, which Python 3.11 does not allow
    two threads of a service at once.

    Args:
        codes: the code points of ideographs.
        first: with `steps` and `characters` the result of `load_tables`.

    Returns:
        int8[len(codes)] of states.
    """
    came_from = np.empty((codes.size, 4), np.int8)
    here = characters[codes[0] - FIRST_HAN]
    sums = np.empty(4)
    for state in range(4):
        sums[state] = first[state] + here[state]
    for t in range(1, codes.size):
        here = characters[codes[t] - FIRST_HAN]
        before = sums
        sums = np.empty(4)
        for state in range(4):
            if state in (_BEGIN, SINGLE):
                low, high = END, SINGLE
            else:
                low, high = _BEGIN, _MIDDLE
            low_sum = before[low] + steps[low, state] + here[state]
            high_sum = before[high] + steps[high, state] + here[state]
            came_from[t, state] = low if low_sum > high_sum else high
            sums[state] = max(low_sum, high_sum)
    states = np.empty(codes.size, np.int8)
    states[-1] = END if sums[END] > sums[SINGLE] else SINGLE
    for t in range(codes.size - 1, 0, -1):
        states[t - 1] = came_from[t, states[t]]
    return states
