"""Pairs and groups for people to read: rows beside each other, what differs marked."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.text import Text

from db_dedup.cli.shared.terminal import has_colour
from db_dedup.plurals import counted
from db_dedup.present.kind_words import kind_words
from db_dedup.present.named_differences import difference_lines, named_differences
from db_dedup.present.side_by_side import beside, mark_differences, shortened_difference
from db_dedup.present.texts import Member, RowText
from db_dedup.present.visible import one_line, visible
from db_dedup.records import DuplicatePair, GroupSummary
from db_dedup.translation import tr

_FIRST: Final = "row {key} (representative)"
_GONE: Final = "(gone since the last scan)"

_PAIR: Final = "{distance} of 64 bits differ\n"
_PAIR_WITH_SIMILARITY: Final = "{distance} of 64 bits differ, similarity {similarity:.3f}\n"
_NEIGHBOUR: Final = "Row {row_key} resembles row {other_key} most: {distance} of 64 bits differ."
_NEIGHBOUR_WITH_SIMILARITY: Final = (
    "Row {row_key} resembles row {other_key} most: {distance} of 64 bits differ, similarity {similarity:.3f}."
)
_GROUPS: Final = {
    (False, False): "Group {group}: {rows}",
    (True, False): "Group {group}: {rows}, loose",
    (False, True): "Group {group}: {rows}, abridged",
    (True, True): "Group {group}: {rows}, loose, abridged",
}
"""By whether the group is loose, and whether it is abridged."""


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
        """Print each pair as two rows beside each other, with its distance and similarity below."""
        for pair, text_a, text_b in pairs:
            self._print_rows(tr("row {key}", key=pair.key_a), text_a, tr("row {key}", key=pair.key_b), text_b)
            self._print_differences(pair.key_a, text_a, pair.key_b, text_b)
            if pair.kind is not None:
                self._say(kind_words(pair.kind, pair.contained_key, pair.other_place))
            template = _PAIR if pair.similarity is None else _PAIR_WITH_SIMILARITY
            self._say(template, distance=pair.distance, similarity=pair.similarity)

    def print_groups(self, groups: Sequence[GroupSummary], members: Iterable[Member]) -> None:
        """Print each group as a block: each of the members that are given beside the representative, in a
        loose group beside the row that it resembles most."""
        by_id = {group.group_id: group for group in groups}
        for group_id, rows in groupby(members, key=lambda member: member.group_id):
            self._print_group(by_id[group_id], rows)

    def _print_group(self, group: GroupSummary, rows: Iterator[Member]) -> None:
        self._say(
            _GROUPS[group.is_loose, group.is_abridged],
            group=visible(group.group_id),
            rows=counted(group.size, "row"),
        )
        first, *others = rows
        if group.is_loose:
            self._print_neighbours(first, others)
        else:
            self._print_members(first, others)
        if group.size > 1 + len(others):
            self._say("And {rows:,} more.", rows=group.size - 1 - len(others))
        self._say("")

    def _print_members(self, first: Member, others: Sequence[Member]) -> None:
        """Print each member beside the representative."""
        equal = [row for row in others if row.text is not None and _look_alike(row.text, first.text)]
        for row in [row for row in others if row not in equal] or equal[:1]:
            left, right = (
                tr(_FIRST, key=first.row_key),
                tr("row {key}", key=row.row_key),
            )
            self._print_rows(left, first.text, right, row.text)
            self._print_differences(first.row_key, first.text, row.row_key, row.text)
        if equal:
            keys = tr(", ").join(visible(row.row_key) for row in equal)
            self._say("The same text as the representative: {keys}.", keys=keys)

    def _print_neighbours(self, first: Member, others: Sequence[Member]) -> None:
        """Print each member beside the row that it resembles most, which need not be the representative."""
        shown: set[frozenset[str]] = set()
        for row in others:
            self._print_neighbour(row, first, shown)
        if first.neighbour and not any(first.row_key in keys for keys in shown):
            self._print_neighbour(first, first, shown)

    def _print_neighbour(self, row: Member, first: Member, shown: set[frozenset[str]]) -> None:
        """Print a member beside its neighbour, unless the two have been shown, and a line that names both."""
        near = row.neighbour
        key, text = (near.row.row_key, near.text) if near else (first.row_key, first.text)
        keys = frozenset((key, row.row_key))
        is_equal = row.text is not None and _look_alike(row.text, text)
        if not is_equal and keys not in shown:
            shown.add(keys)
            left, right = (
                tr(_FIRST if k == first.row_key else "row {key}", key=k) for k in (key, row.row_key)
            )
            self._print_rows(left, text, right, row.text)
            self._print_differences(key, text, row.row_key, row.text)
        named = {"row_key": visible(row.row_key), "other_key": visible(key)}
        if is_equal:
            self._say("Row {row_key} has the same text as row {other_key}.", **named)
        elif near is None:
            self._say("Row {row_key} is in no stored pair.", **named)
        else:
            distance, similarity = near.row.distance, near.row.similarity
            template = _NEIGHBOUR if similarity is None else _NEIGHBOUR_WITH_SIMILARITY
            self._say(template, **named, distance=distance, similarity=similarity)

    def _print_rows(self, left: str, left_text: RowText, right: str, right_text: RowText) -> None:
        rows = [(name, *self._marked(left_text, right_text, i)) for i, name in enumerate(self._columns)]
        self._console.print(beside(left, right, rows))

    def _print_differences(self, key_a: str, text_a: RowText, key_b: str, text_b: RowText) -> None:
        """Name the places, people, numbers and dates that only one of two rows has."""
        if text_a is None or text_b is None:
            return
        for line in difference_lines(named_differences(text_a, text_b), key_a, key_b):
            self._say(line)

    def _marked(self, left: RowText, right: RowText, i: int) -> tuple[Text, Text]:
        if left is None or right is None:
            return self._plain(left, i), self._plain(right, i)
        return mark_differences(one_line(left[i]), one_line(right[i]), has_colour(self._console), self._full)

    def _plain(self, text: RowText, i: int) -> Text:
        if text is None:
            return Text(tr(_GONE), "italic")
        shown = one_line(text[i])
        return Text(shown if self._full else shortened_difference(shown))

    def _say(self, template: str, /, **fields: object) -> None:
        self._console.print(Text(tr(template, **fields) if template else ""), soft_wrap=True)


def _look_alike(text: tuple[str, ...], other: RowText) -> bool:
    return other is not None and all(one_line(a) == one_line(b) for a, b in zip(text, other, strict=True))
