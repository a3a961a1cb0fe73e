"""Pairs and groups for people to read: rows beside each other, what differs marked."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.text import Text

from db_dedup.amounts import counted
from db_dedup.cli.side_by_side import (
    beside,
    has_colour,
    mark_differences,
    one_line,
    shortened_difference,
)
from db_dedup.cli.terminal import visible
from db_dedup.cli.texts import Member, RowText
from db_dedup.records import DuplicatePair, GroupSummary

_LEADS: Final = " (representative)"
_GONE: Final = "(gone since the last scan)"


class Review:
    """Prints rows side by side.

    Args:
        columns: the names of the watched columns.
        full: show whole texts.
    """

    def __init__(self, columns: Sequence[str], full: bool) -> None:
        self._console = Console(highlight=False)
        self._columns = [visible(name) for name in columns]
        self._full = full

    def print_pairs(self, pairs: Iterable[tuple[DuplicatePair, RowText, RowText]]) -> None:
        """Each pair as two rows beside each other, with its distance and similarity below."""
        for pair, text_a, text_b in pairs:
            self._print_rows(f"row {pair.key_a}", text_a, f"row {pair.key_b}", text_b)
            self._say(f"{pair.distance} of 64 bits differ{_similarity(pair.similarity)}\n")

    def print_groups(self, groups: Sequence[GroupSummary], members: Iterable[Member]) -> None:
        """Each group as a block: each of the members that are given beside the representative, in a
        loose group beside the row that it resembles most."""
        by_id = {group.group_id: group for group in groups}
        for group_id, rows in groupby(members, key=lambda member: member.group_id):
            self._print_group(by_id[group_id], rows)

    def _print_group(self, group: GroupSummary, rows: Iterator[Member]) -> None:
        flags = [
            name for name, is_set in (("loose", group.is_loose), ("abridged", group.is_abridged)) if is_set
        ]
        self._say(", ".join([f"Group {visible(group.group_id)}: {counted(group.size, 'row')}", *flags]))
        first, *others = rows
        if group.is_loose:
            self._print_neighbours(first, others)
        else:
            self._print_members(first, others)
        if group.size > 1 + len(others):
            self._say(f"And {group.size - 1 - len(others):,} more.")
        self._say("")

    def _print_members(self, first: Member, others: Sequence[Member]) -> None:
        """Each member beside the representative."""
        equal = [row for row in others if row.text is not None and _look_alike(row.text, first.text)]
        for row in [row for row in others if row not in equal] or equal[:1]:
            left, right = f"row {first.row_key}{_LEADS}", f"row {row.row_key}"
            self._print_rows(left, first.text, right, row.text)
        if equal:
            keys = ", ".join(visible(row.row_key) for row in equal)
            self._say(f"The same text as the representative: {keys}.")

    def _print_neighbours(self, first: Member, others: Sequence[Member]) -> None:
        """Each member beside the row that it resembles most, which need not be the representative."""
        shown: set[frozenset[str]] = set()
        for row in others:
            self._print_neighbour(row, first, shown)
        if first.neighbour and not any(first.row_key in keys for keys in shown):
            self._print_neighbour(first, first, shown)

    def _print_neighbour(self, row: Member, first: Member, shown: set[frozenset[str]]) -> None:
        """A member beside its neighbour, unless the two have been shown, and a line that names both."""
        near = row.neighbour
        key, text = (near.row.row_key, near.text) if near else (first.row_key, first.text)
        keys = frozenset((key, row.row_key))
        is_equal = row.text is not None and _look_alike(row.text, text)
        if not is_equal and keys not in shown:
            shown.add(keys)
            left, right = (f"row {k}{_LEADS * (k == first.row_key)}" for k in (key, row.row_key))
            self._print_rows(left, text, right, row.text)
        if is_equal:
            said = f"has the same text as row {key}"
        elif near:
            similarity = _similarity(near.row.similarity)
            said = f"resembles row {key} most: {near.row.distance} of 64 bits differ{similarity}"
        else:
            said = "is in no stored pair"
        self._say(visible(f"Row {row.row_key} {said}."))

    def _print_rows(self, left: str, left_text: RowText, right: str, right_text: RowText) -> None:
        rows = [(name, *self._marked(left_text, right_text, i)) for i, name in enumerate(self._columns)]
        self._console.print(beside(left, right, rows))

    def _marked(self, left: RowText, right: RowText, i: int) -> tuple[Text, Text]:
        if left is None or right is None:
            return self._plain(left, i), self._plain(right, i)
        return mark_differences(one_line(left[i]), one_line(right[i]), has_colour(self._console), self._full)

    def _plain(self, text: RowText, i: int) -> Text:
        if text is None:
            return Text(_GONE, "italic")
        shown = one_line(text[i])
        return Text(shown if self._full else shortened_difference(shown))

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def _similarity(similarity: float | None) -> str:
    return "" if similarity is None else f", similarity {similarity:.3f}"


def _look_alike(text: tuple[str, ...], other: RowText) -> bool:
    return other is not None and all(one_line(a) == one_line(b) for a, b in zip(text, other, strict=True))
