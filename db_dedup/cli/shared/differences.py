"""How two answers differ, for people: counts, and some examples of each kind."""

from collections.abc import Iterable
from typing import Any

from db_dedup.cli.shared.output import print_table
from db_dedup.cli.shared.terminal import say
from db_dedup.plurals import counted
from db_dedup.records import AnswerDifferences, Difference

_PAIR_COLUMNS = ("key_a", "key_b", "distance", "similarity")


def tell_differences(found: AnswerDifferences) -> None:
    """Print pairs gained and lost, groups that merge and split; the tables go to stdout."""
    for words, pairs in (
        (counted(found.pairs_gained.count, "pair gained", "pairs gained"), found.pairs_gained),
        (counted(found.pairs_lost.count, "pair lost", "pairs lost"), found.pairs_lost),
        (
            counted(
                found.pairs_changed.count,
                "pair with another distance or similarity",
                "pairs with another distance or similarity",
            ),
            found.pairs_changed,
        ),
    ):
        rows = ((p.key_a, p.key_b, p.distance, p.similarity) for p in pairs.samples)
        _tell(words, pairs, _PAIR_COLUMNS, rows)
    for words, groups in (
        (counted(found.groups_gained.count, "group gained", "groups gained"), found.groups_gained),
        (counted(found.groups_lost.count, "group lost", "groups lost"), found.groups_lost),
        (
            counted(
                found.groups_merged.count,
                "group that merges or takes in rows",
                "groups that merge or take in rows",
            ),
            found.groups_merged,
        ),
        (
            counted(
                found.groups_split.count, "group that splits or loses rows", "groups that split or lose rows"
            ),
            found.groups_split,
        ),
        (
            counted(
                found.groups_changed.count,
                "group not the same in both answers, these included",
                "groups not the same in both answers, these included",
            ),
            found.groups_changed,
        ),
    ):
        _tell(words, groups, ("group_id",), ((key,) for key in groups.samples))


def _tell(
    words: str, difference: Difference[Any], columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]
) -> None:
    shown = len(difference.samples)
    if difference.count > shown:
        say("{differences}, the first {shown}:", differences=words, shown=shown)
    else:
        say(words)
    if difference.count:
        print_table(columns, rows)
