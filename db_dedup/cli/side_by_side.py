"""Two texts beside each other, with what differs marked: in colour, or in brackets where there is none."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

_ONLY_LEFT, _ONLY_RIGHT = "bold red", "bold green"
_LEFT_BRACKETS, _RIGHT_BRACKETS = ("[-", "-]"), ("{+", "+}")

# Control characters and changes of direction could rewrite what stands on the terminal already.
_UNSEEN: Final = re.compile("[\x00-\x20\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")

LONGEST_ALIKE: Final = 80
"""Characters: a longer stretch that both texts share is shortened, where texts are shown to be skimmed."""
_KEPT_AT_END: Final = 30
_LONGEST_NAME: Final = 16


def side_by_side(left_title: str, right_title: str, rows: list[tuple[str, str, str]]) -> Table:
    """A table with a line for each (column name, left text, right text)."""
    return beside(
        left_title, right_title, [(name, *mark_differences(left, right)) for name, left, right in rows]
    )


def beside(left_title: str, right_title: str, rows: Iterable[tuple[str, Text, Text]]) -> Table:
    """A table with a line for each (column name, left text, right text), both marked already."""
    table = Table(show_lines=True, expand=True)
    # Chinese has no spaces to wrap at. Keys and names are the user's: what looks like markup in them is none.
    table.add_column(overflow="fold", max_width=_LONGEST_NAME)
    for title in (left_title, right_title):
        table.add_column(Text(one_line(title)), overflow="fold", ratio=1)
    for name, left, right in rows:
        table.add_row(Text(name), left, right)
    return table


def mark_differences(
    left: str, right: str, colour: bool = True, longest_alike: int | None = None
) -> tuple[Text, Text]:
    """Both texts, the characters that the other lacks marked.

    Args:
        left: any text.
        right: any text.
        colour: mark by colour, else by brackets.
        longest_alike: characters; longer stretches that both share are shortened.
    """
    marked_left, marked_right = Text(), Text()
    for kind, a, a_end, b, b_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            alike = _shortened(left[a:a_end], longest_alike)
            marked_left.append(alike)
            marked_right.append(alike)
        else:
            append_left(marked_left, left[a:a_end], colour)
            append_right(marked_right, right[b:b_end], colour)
    return marked_left, marked_right


def append_left(to: Text, part: str, colour: bool) -> None:
    """Append what only the left text has."""
    _append(to, part, _ONLY_LEFT if colour else None, _LEFT_BRACKETS)


def append_right(to: Text, part: str, colour: bool) -> None:
    """Append what only the right text has."""
    _append(to, part, _ONLY_RIGHT if colour else None, _RIGHT_BRACKETS)


def has_colour(console: Console) -> bool:
    """Whether its colours can be told apart; a pipe and `NO_COLOR` have none."""
    return console.color_system is not None and not console.no_color


def one_line(text: str) -> str:
    """The text with white space collapsed and without what would move the cursor."""
    return _UNSEEN.sub(" ", text).strip()


def _append(to: Text, part: str, style: str | None, brackets: tuple[str, str]) -> None:
    if part and style:
        to.append(part, style)
    elif part:
        to.append(part.join(brackets))


def _shortened(alike: str, longest: int | None) -> str:
    if longest is None or len(alike) <= longest:
        return alike
    left_out = len(alike) - 2 * _KEPT_AT_END
    return f"{alike[:_KEPT_AT_END]} … {left_out:,} characters … {alike[-_KEPT_AT_END:]}"
