"""Two texts as one, with what only the earlier one has and what only the later one has."""

from typing import NamedTuple

from db_dedup import align

REACH = 10_000
"""Characters in which the next common part is looked for."""


class Part(NamedTuple):
    """A part of a text; `mark` is "del" or "ins" if only the earlier or later text has it, else ""."""

    mark: str
    text: str


def differences(earlier: str, later: str) -> list[Part]:
    """The parts of both texts in order."""
    parts: list[Part] = []
    for stretch in align(earlier, later, REACH):
        removed = earlier[stretch.left : stretch.left_end]
        if stretch.is_common:
            parts.append(Part("", removed))
            continue
        parts.append(Part("del", removed))
        parts.append(Part("ins", later[stretch.right : stretch.right_end]))
    return [part for part in parts if part.text]
