"""Which ids are no longer those of their groups, from the rows that have moved.

It makes no difference how the rows came to be in other groups, so scan and worker share it.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from db_dedup.records.group_history import ChangedGroup, ChangeKind

_Id = TypeVar("_Id", bound=Hashable)


class SizedGroup(NamedTuple):
    """A group: the row key of its representative, and how many rows it has."""

    key: str
    size: int


def changed_groups(
    moved: Mapping[tuple[_Id, _Id | None], int],
    before: Mapping[_Id, SizedGroup],
    after: Mapping[_Id, SizedGroup],
) -> list[ChangedGroup]:
    """Return the former groups whose rows are not all found by the id of the group any more.

    A group that grows, or whose rows become fewer, is not among them: its id leads to the rest of its rows.

    Args:
        moved: (number of the former group, of the new one) -> rows, for the rows whose group has another
            number now; None for those that are in no group, or gone.
        before: number -> group, for the former groups of these rows and all former groups that have the
            number of one of their new groups.
        after: number -> group, for the new groups of these rows and of those that stay.
    """
    rows = _rows_by_key(moved, before, after)
    sources = Counter(key for found in rows.values() for key in found)
    sizes = {group.key: group.size for group in after.values()}
    old_sizes = {group.key: group.size for group in before.values()}
    return [
        ChangedGroup(kind, old, key, old_sizes[old], count, None if key is None else sizes[key])
        for old, found in rows.items()
        for kind, key, count in _changes(old, found, sources)
    ]


def _rows_by_key(
    moved: Mapping[tuple[_Id, _Id | None], int],
    before: Mapping[_Id, SizedGroup],
    after: Mapping[_Id, SizedGroup],
) -> dict[str, Counter[str]]:
    """Return former group -> new group -> rows that were in the one and are in the other.

    Groups are compared by key, because SQLite may give the number of a deleted representative to another row.
    A former group that is not known, as in a damaged answer, is left out.
    """
    left: Counter[_Id] = Counter()
    rows: dict[str, Counter[str]] = {group.key: Counter() for group in before.values()}
    for (old, new), count in moved.items():
        left[old] += count
        if new is not None and old in before:
            rows[before[old].key][after[new].key] += count
    for number, group in before.items():
        if number in after and group.size > left[number]:
            rows[group.key][after[number].key] += group.size - left[number]
    return rows


def _changes(
    old: str, found: Counter[str], sources: Counter[str]
) -> Iterator[tuple[ChangeKind, str | None, int]]:
    """Yield (kind, new group, rows) of a former group; nothing if its id leads to its rows as before."""
    if not found:
        yield "ended", None, 0
    elif len(found) > 1:
        yield from (("split", key, count) for key, count in sorted(found.items()))
    elif old not in found:
        ((key, count),) = found.items()
        yield "merged" if sources[key] > 1 else "new_representative", key, count
