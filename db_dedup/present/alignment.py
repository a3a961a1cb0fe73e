"""Which stretches two texts have in common, also of texts of many megabytes.

Texts with spaces between their words are compared word by word, Chinese and Japanese character by character,
mixed ones each part in its way. `difflib` takes time with the square of the length. So long texts are cut at
long stretches that both have, found by hashing, and `difflib` sees only what is between two of them.
"""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final, NamedTuple

_SHORT: Final = 1_000
"""Characters: texts, or gaps between common stretches, up to this length are left to difflib."""
_ANCHOR: Final = 16
"""Characters: any common stretch of at least 2 * 16 - 1 is found, at any position."""
_BLOCK: Final = 4_096
_LONGEST_WORD: Final = 100
"""Characters: a longer one may be cut between two stretches."""

_UNSPACED: Final = (
    "\u0e00-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u312f\u31a0-\u9fff\ua000-\ua4cf"
    "\uf900-\ufaff\uff66-\uff9f\U00016fe0-\U0003ffff"
)
"""Scripts that are written without spaces between words: of South-East Asia, China and Japan."""
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe20-\ufe2f"
)
"""Accents and vowel signs, which are no letters to a regular expression, and the letters of India."""
_LETTERS: Final = f"(?:[^\\W{_UNSPACED}]|[{_MARKS}])+"
_UNIT: Final = re.compile(f"{_LETTERS}(?:['\u2019]{_LETTERS})*|.", re.DOTALL)
"""A word, or one character of anything else."""


def units(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each word, and of each character outside the words of spaced scripts."""
    return (unit.span() for unit in _UNIT.finditer(text))


class Stretch(NamedTuple):
    """Where a stretch begins and ends in each of two texts, and whether it is the same in both."""

    is_common: bool
    left: int
    left_end: int
    right: int
    right_end: int


def align(left: str, right: str, reach: int | None = None) -> Iterator[Stretch]:
    """Yield the stretches of two texts from beginning to end; each is searched only when it is asked for.

    Args:
        left: any text.
        right: any text.
        reach: characters from a difference on in which the next common stretch is looked for; where there is
            none, all that follows counts as different. Left out, the whole texts are looked through.
    """
    a = b = 0
    for common in _whole_words(left, right, _common_stretches(left, right, reach)):
        yield from _between(left, a, common.left, right, b, common.right)
        yield common
        a, b = common.left_end, common.right_end
    yield from _between(left, a, len(left), right, b, len(right))


def _common_stretches(left: str, right: str, reach: int | None) -> Iterator[Stretch]:
    """Yield long stretches that both texts have; none of short texts, since difflib will find them."""
    a = b = 0
    if max(len(left), len(right)) <= _SHORT:
        return
    while a < len(left) or b < len(right):
        same = _count_same(left, a, right, b)
        if same:
            yield Stretch(True, a, a + same, b, b + same)
        a, b = _next_anchor(left, a + same, right, b + same, reach)


def _whole_words(left: str, right: str, stretches: Iterator[Stretch]) -> Iterator[Stretch]:
    """Yield the stretches without the parts of words at their ends; one without a whole word is left out."""
    for _, a, a_end, b, b_end in stretches:
        first = max(_word_around(left, a)[1] - a, _word_around(right, b)[1] - b)
        last = min(_word_around(left, a_end)[0] - a, _word_around(right, b_end)[0] - b)
        if first < last:
            yield Stretch(True, a + first, a + last, b + first, b + last)


def _word_around(text: str, place: int) -> tuple[int, int]:
    """Return begin and end of the word that a place is inside of; the place itself where it is in none."""
    first, end = max(0, place - _LONGEST_WORD), min(len(text), place + _LONGEST_WORD)
    for unit in _UNIT.finditer(text, first, end):
        if unit.end() > place:
            is_cut = (unit.start() == first > 0) or (unit.end() == end < len(text))
            return (place, place) if is_cut or unit.start() == place else unit.span()
    return place, place


def _count_same(left: str, a: int, right: str, b: int) -> int:
    """Return how many characters from these places on are the same."""
    most = min(len(left) - a, len(right) - b)
    same = 0
    while same < most:
        block = min(_BLOCK, most - same)
        one, other = left[a + same : a + same + block], right[b + same : b + same + block]
        if one != other:
            return same + next(i for i in range(block) if one[i] != other[i])
        same += block
    return same


def _next_anchor(left: str, a: int, right: str, b: int, reach: int | None) -> tuple[int, int]:
    """Return where the next long common stretch after these places begins; the texts' ends if none does."""
    size = _SHORT
    while True:
        places = {
            right[place : place + _ANCHOR]: place
            for place in reversed(range(b, min(b + size, len(right) - _ANCHOR + 1), _ANCHOR))
        }
        for place in range(a, min(a + size, len(left) - _ANCHOR + 1) if places else a):
            other = places.get(left[place : place + _ANCHOR])
            if other is not None:
                return _stretched_back(left, a, place, right, b, other)
        is_all = a + size >= len(left) and b + size >= len(right)
        if is_all or (reach is not None and size >= reach):
            return len(left), len(right)
        size *= 4


def _stretched_back(left: str, a: int, place: int, right: str, b: int, other: int) -> tuple[int, int]:
    while place > a and other > b and left[place - 1] == right[other - 1]:
        place, other = place - 1, other - 1
    return place, other


def _between(left: str, a: int, a_end: int, right: str, b: int, b_end: int) -> Iterator[Stretch]:
    if max(a_end - a, b_end - b) > _SHORT:
        yield Stretch(False, a, a_end, b, b_end)
        return
    words, others = _UNIT.findall(left, a, a_end), _UNIT.findall(right, b, b_end)
    places, other_places = _places(a, words), _places(b, others)
    # Blanks begin no common stretch, else two different sentences would have every blank in common.
    matcher = SequenceMatcher(str.isspace, words, others, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        yield Stretch(kind == "equal", places[i], places[i_end], other_places[j], other_places[j_end])


def _places(begin: int, words: list[str]) -> list[int]:
    return [*accumulate(map(len, words), initial=begin)]
