"""Divide two texts into the parts that both have, and those that only one has, to show them side by side."""

from typing import Final, NamedTuple

from db_dedup.present.alignment import align
from db_dedup.present.visible import visible

_REACH: Final = 10_000
"""Characters in which the next common part is looked for."""
_LONGEST_ALIKE: Final = 240
_KEPT_OF_ALIKE: Final = 80
_LONGEST_DIFFERING: Final = 2_000
_MOST_DIFFERENCES: Final = 200


class TextPart(NamedTuple):
    """A part of a text.

    Attributes:
        differs: whether only this text has it.
        left_out: how many characters are not shown at this place; 0 for a part with text.
    """

    text: str
    differs: bool = False
    left_out: int = 0


def marked(left: str, right: str, full: bool) -> tuple[list[TextPart], list[TextPart]]:
    """Return the parts of two texts.

    Args:
        left: any text.
        right: any text.
        full: leave out nothing.
    """
    parts_left: list[TextPart] = []
    parts_right: list[TextPart] = []
    differences = 0
    for stretch in align(left, right, _REACH):
        one, other = left[stretch.left : stretch.left_end], right[stretch.right : stretch.right_end]
        if stretch.is_common:
            alike = _shortened(one, full)
            parts_left += alike
            parts_right += alike
            continue
        if differences == _MOST_DIFFERENCES and not full:
            parts_left.append(TextPart("", left_out=len(left) - stretch.left))
            parts_right.append(TextPart("", left_out=len(right) - stretch.right))
            break
        differences += 1
        parts_left += _differing(one, full)
        parts_right += _differing(other, full)
    return parts_left, parts_right


def shown(text: str) -> str:
    """Return a text whose characters change neither the direction of writing nor what is around it."""
    return "\n".join(visible(line.replace("\t", " ")) for line in text.replace("\r\n", "\n").split("\n"))


def beginning(text: str, most: int) -> str:
    """Return the first characters of a text, in one line."""
    line = " ".join(text[: 4 * most].split())
    return visible(line if len(line) <= most else line[: most - 1] + "…")


def _shortened(text: str, full: bool) -> list[TextPart]:
    if full or len(text) <= _LONGEST_ALIKE:
        return [TextPart(shown(text))]
    kept = _KEPT_OF_ALIKE
    return [
        TextPart(shown(text[:kept])),
        TextPart("", left_out=len(text) - 2 * kept),
        TextPart(shown(text[-kept:])),
    ]


def _differing(text: str, full: bool) -> list[TextPart]:
    if not text:
        return []
    if full or len(text) <= _LONGEST_DIFFERING:
        return [TextPart(shown(text), differs=True)]
    most = _LONGEST_DIFFERING
    return [TextPart(shown(text[:most]), differs=True), TextPart("", left_out=len(text) - most)]
