"""Two texts beside each other, with what differs marked."""

from difflib import SequenceMatcher

from rich.table import Table
from rich.text import Text

_ONLY_LEFT, _ONLY_RIGHT = "bold red", "bold green"


def side_by_side(left_title: str, right_title: str, rows: list[tuple[str, str, str]]) -> Table:
    """A table with a line for each (column name, left text, right text)."""
    table = Table("", left_title, right_title, show_lines=True, expand=True)
    for column in table.columns[1:]:
        column.ratio = 1
        column.overflow = "fold"  # Chinese has no spaces to wrap at
    for name, left, right in rows:
        table.add_row(name, *mark_differences(left, right))
    return table


def mark_differences(left: str, right: str) -> tuple[Text, Text]:
    """Both texts, the characters that the other lacks marked."""
    marked_left, marked_right = Text(left), Text(right)
    for kind, a, a_end, b, b_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind != "equal":
            marked_left.stylize(_ONLY_LEFT, a, a_end)
            marked_right.stylize(_ONLY_RIGHT, b, b_end)
    return marked_left, marked_right
