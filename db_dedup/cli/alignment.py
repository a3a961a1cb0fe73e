"""Which stretches two texts have in common, also of texts of many megabytes.

`difflib` takes time with the square of the length. So long texts are cut at long stretches that both have,
found by hashing, and `difflib` sees only what is between two of them.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final, NamedTuple

_SHORT: Final = 1_000
"""Characters: texts, or gaps between common stretches, up to this length are left to difflib."""
_ANCHOR: Final = 16
"""Characters: a common stretch of twice as many, less one, is found wherever it begins."""
_BLOCK: Final = 4_096


class Stretch(NamedTuple):
    """Where a stretch begins and ends in each of two texts, and whether it is the same in both."""

    is_common: bool
    left: int
    left_end: int
    right: int
    right_end: int


def align(left: str, right: str, reach: int | None = None) -> Iterator[Stretch]:
    """The stretches of two texts from their beginnings to their ends, each found when it is asked for.

    Args:
        left: any text.
        right: any text.
        reach: characters from a difference on in which the next common stretch is looked for; where there is
            none, all that follows counts as different. Left out, the whole texts are looked through.
    """
    a = b = 0
    if max(len(left), len(right)) <= _SHORT:
        yield from _between(left, a, len(left), right, b, len(right))
        return
    while a < len(left) or b < len(right):
        same = _count_same(left, a, right, b)
        if same:
            yield Stretch(True, a, a + same, b, b + same)
        a, b = a + same, b + same
        a_end, b_end = _next_anchor(left, a, right, b, reach)
        yield from _between(left, a, a_end, right, b, b_end)
        a, b = a_end, b_end


def _count_same(left: str, a: int, right: str, b: int) -> int:
    """How many characters from these places on are the same."""
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
    """Where the nearest long common stretch after these places begins; the ends of the texts if none does."""
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
    matcher = SequenceMatcher(None, left[a:a_end], right[b:b_end], autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        yield Stretch(kind == "equal", a + i, a + i_end, b + j, b + j_end)
