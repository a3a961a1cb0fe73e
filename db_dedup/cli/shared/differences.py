"""How two answers differ, for people: counts, and some examples of each kind."""

from collections.abc import Iterable
from typing import Any

from db_dedup.amounts import counted
from db_dedup.cli.shared.output import print_table
from db_dedup.cli.shared.terminal import say
from db_dedup.records import AnswerDifferences, Difference

_PAIR_COLUMNS = ("key_a", "key_b", "distance", "similarity")


def tell_differences(found: AnswerDifferences) -> None:
    """Pairs gained and lost, groups that merge and split; the tables go to stdout."""
    for one, many, pairs in (
        ("pair gained", "pairs gained", found.pairs_gained),
        ("pair lost", "pairs lost", found.pairs_lost),
        (
            "pair with another distance or similarity",
            "pairs with another distance or similarity",
            found.pairs_changed,
        ),
    ):
        rows = ((p.key_a, p.key_b, p.distance, p.similarity) for p in pairs.samples)
        _tell(one, many, pairs, _PAIR_COLUMNS, rows)
    for one, many, groups in (
        ("group gained", "groups gained", found.groups_gained),
        ("group lost", "groups lost", found.groups_lost),
        ("group that merges or takes in rows", "groups that merge or take in rows", found.groups_merged),
        ("group that splits or loses rows", "groups that split or lose rows", found.groups_split),
        (
            "group not the same in both answers, these included",
            "groups not the same in both answers, these included",
            found.groups_changed,
        ),
    ):
        _tell(one, many, groups, ("group_id",), ((key,) for key in groups.samples))


def _tell(
    one: str,
    many: str,
    difference: Difference[Any],
    columns: tuple[str, ...],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    differences, shown = counted(difference.count, one, many), len(difference.samples)
    if difference.count > shown:
        say("{differences}, the first {shown}:", differences=differences, shown=shown)
    else:
        say("{differences}", differences=differences)
    if difference.count:
        print_table(columns, rows)
