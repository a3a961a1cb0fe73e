"""What people ask of a list of groups that they review."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from db_dedup.records.kinds import Kind

GroupOrder = Literal["size", "newest", "loose"]
GROUP_ORDERS: Final[tuple[GroupOrder, ...]] = get_args(GroupOrder)
"""The largest first; those to which a row was added last first; loose ones first, then by size."""


@dataclass(frozen=True)
class GroupFilter:
    """Which groups are wanted; None: no condition.

    Attributes:
        kind: groups with a pair of this kind.
        other_place: groups with a pair of two places.
        is_loose: loose groups, or the others.
        since: groups with a row whose order value, as a text that sorts, is this or a later one.
        until: and before this one.
        column: groups with a row that has `value` in this column.
        value: the whole value of a value column, a part of a text.
    """

    kind: Kind | None = None
    other_place: bool | None = None
    is_loose: bool | None = None
    since: str | None = None
    until: str | None = None
    column: str | None = None
    value: str | None = None


EVERY_GROUP: Final = GroupFilter()
