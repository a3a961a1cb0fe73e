"""How the ids of groups change. The id of a group is the key of its representative, which can change."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple

from db_dedup.records import GroupSummary

ChangeKind = Literal["merged", "split", "new_representative", "ended"]
CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = ("merged", "split", "new_representative", "ended")


class ChangedGroup(NamedTuple):
    """A group whose id is no longer the one id of its rows.

    Attributes:
        kind: `merged` with a group that has the new id, `split` into this group and others, the same group
            with a `new_representative`, or `ended`: none of its rows is in a group.
        old_key: row key of its representative before.
        new_key: of the group that has rows of it now; None if it ended. A split group has an entry for each.
        old_size: rows before.
        moved: how many of these rows are in the new group.
        new_size: rows of the new group.
    """

    kind: ChangeKind
    old_key: str
    new_key: str | None
    old_size: int
    moved: int
    new_size: int | None


@dataclass(frozen=True)
class GroupChange:
    """A change of a group's id, when and by what.

    Attributes:
        group_id: before.
        new_group_id: of the group that has rows of it since then; None if there is none.
        kind: merged, split, new_representative or ended.
        size: rows before.
        moved: how many of these rows are in the new group.
        new_size: rows of the new group; None if there is none.
        changed_at: UTC.
        scan: the number of the scan that found it; None if it was the worker.
    """

    group_id: str
    new_group_id: str | None
    kind: ChangeKind
    size: int
    moved: int
    new_size: int | None
    changed_at: datetime
    scan: int | None


@dataclass(frozen=True)
class GroupHistory:
    """How one id of a group has changed.

    Attributes:
        group_id: the id that was asked for.
        groups: the groups that it leads to now, the largest first; itself, if it still is the id of a group.
        changes: what happened to the group, and to the groups that it has become, the earliest first.
        origins: the latest changes by which rows of other groups came to the group of this id, the latest
            first.
        row_group_id: the group that the row of this key is in now. It helps where the changes are older than
            the history.
    """

    group_id: str
    groups: tuple[GroupSummary, ...]
    changes: tuple[GroupChange, ...]
    origins: tuple[GroupChange, ...]
    row_group_id: str | None

    @property
    def is_group(self) -> bool:
        """Whether a group has this id now."""
        return any(group.group_id == self.group_id for group in self.groups)

    @property
    def is_known(self) -> bool:
        """Whether a group has this id, or had it within the time for which changes are kept."""
        return bool(self.groups or self.changes)


class ChangeCount(NamedTuple):
    """How many ids one scan, or the worker, changed.

    Attributes:
        scan: its number; None for the worker.
        last_at: when it changed the last one, UTC.
        ids: kind -> how many ids of groups.
    """

    scan: int | None
    last_at: datetime
    ids: dict[ChangeKind, int]
