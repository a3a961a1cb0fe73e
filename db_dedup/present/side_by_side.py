"""Two texts beside each other, with what differs marked: in colour, or in brackets where there is none."""

from collections.abc import Iterable
from typing import Final

from rich.table import Table
from rich.text import Text

from db_dedup.plurals import counted
from db_dedup.present.alignment import align
from db_dedup.present.visible import visible
from db_dedup.translation import tr

_ONLY_LEFT, _ONLY_RIGHT = "bold red", "bold green"
_LEFT_BRACKETS, _RIGHT_BRACKETS = ("[-", "-]"), ("{+", "+}")

# Characters: where texts are shown to be skimmed, longer stretches are shortened to their ends.
_LONGEST_ALIKE: Final = 80
_KEPT_OF_ALIKE: Final = 30
_LONGEST_DIFFERING: Final = 1_000
_KEPT_OF_DIFFERING: Final = 400
MOST_DIFFERENCES: Final = 50
"""Of two texts that are shown to be skimmed."""
_REACH: Final = 1_000_000
_LONGEST_NAME: Final = 16


def side_by_side(left_title: str, right_title: str, rows: list[tuple[str, str, str]]) -> Table:
    """Return a table with a line for each (column name, left text, right text)."""
    return beside(
        left_title, right_title, [(name, *mark_differences(left, right)) for name, left, right in rows]
    )


def beside(left_title: str, right_title: str, rows: Iterable[tuple[str, Text, Text]]) -> Table:
    """Return a table with a line for each (column name, left text, right text), whose texts are marked."""
    table = Table(show_lines=True, expand=True)
    # Lines are folded, since Chinese has no spaces to wrap at. Keys and names may contain what Rich takes for
    # markup, so they are given as Text.
    table.add_column(overflow="fold", max_width=_LONGEST_NAME)
    for title in (left_title, right_title):
        table.add_column(Text(visible(title)), overflow="fold", ratio=1)
    for name, left, right in rows:
        table.add_row(Text(name), left, right)
    return table


def mark_differences(left: str, right: str, colour: bool = True, full: bool = False) -> tuple[Text, Text]:
    """Return both texts, with marks on the characters that the other text does not have.

    Args:
        left: any text.
        right: any text.
        colour: mark by colour, else by brackets.
        full: show the whole texts, else the first differences and a little of what is around them.
    """
    marked_left, marked_right = Text(), Text()
    differences = 0
    for stretch in align(left, right, None if full else _REACH):
        one, other = left[stretch.left : stretch.left_end], right[stretch.right : stretch.right_end]
        if stretch.is_common:
            alike = one if full else _shortened(one, _LONGEST_ALIKE, _KEPT_OF_ALIKE)
            marked_left.append(alike)
            marked_right.append(alike)
            continue
        if differences == MOST_DIFFERENCES and not full:
            marked_left.append(_left_out(len(left) - stretch.left))
            marked_right.append(_left_out(len(right) - stretch.right))
            break
        append_left(marked_left, one if full else shortened_difference(one), colour)
        append_right(marked_right, other if full else shortened_difference(other), colour)
        differences += 1
    return marked_left, marked_right


def shortened_difference(text: str) -> str:
    """Return a text, or what only one of two texts has, without its middle if it is long."""
    return _shortened(text, _LONGEST_DIFFERING, _KEPT_OF_DIFFERING)


def append_left(to: Text, part: str, colour: bool) -> None:
    """Append what only the left text has."""
    _append(to, part, _ONLY_LEFT if colour else None, _LEFT_BRACKETS)


def append_right(to: Text, part: str, colour: bool) -> None:
    """Append what only the right text has."""
    _append(to, part, _ONLY_RIGHT if colour else None, _RIGHT_BRACKETS)


def _append(to: Text, part: str, style: str | None, brackets: tuple[str, str]) -> None:
    if part and style:
        to.append(part, style)
    elif part:
        to.append(part.join(brackets))


def _shortened(text: str, longest: int, kept: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[:kept]}{_left_out(len(text) - 2 * kept)}{text[-kept:]}"


def _left_out(characters: int) -> str:
    return f" … {tr(counted(characters, 'character'))} … "
