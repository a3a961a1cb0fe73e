"""How two answers differ, for people: counts, and some examples of each kind."""

from collections.abc import Iterable
from typing import Any

from db_dedup.amounts import counted
from db_dedup.cli.output import print_table
from db_dedup.cli.terminal import say
from db_dedup.records import AnswerDifferences, Difference, PastScan, ScanReport

_PAIR_COLUMNS = ("key_a", "key_b", "distance", "similarity")


def tell_differences(found: AnswerDifferences) -> None:
    """Pairs gained and lost, groups that merge and split; the tables go to stdout."""
    for what, pairs in (
        ("gained", found.pairs_gained),
        ("lost", found.pairs_lost),
        ("with another distance or similarity", found.pairs_changed),
    ):
        rows = ((p.key_a, p.key_b, p.distance, p.similarity) for p in pairs.samples)
        _tell(f"pair {what}", f"pairs {what}", pairs, _PAIR_COLUMNS, rows)
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


def changes_of(scan: ScanReport | PastScan) -> str:
    """How a scan changed the answer that stood, in some words."""
    gained, lost, groups = scan.pairs_gained or 0, scan.pairs_lost or 0, scan.groups_changed or 0
    if not (gained or lost or groups):
        return "nothing has changed"
    return f"{counted(gained, 'pair')} gained, {lost:,} lost, {counted(groups, 'group')} changed"


def _tell(
    one: str,
    many: str,
    difference: Difference[Any],
    columns: tuple[str, ...],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    some = f", the first {len(difference.samples)}:" if difference.count > len(difference.samples) else ""
    say(f"{counted(difference.count, one, many)}{some}")
    if difference.count:
        print_table(columns, rows)
