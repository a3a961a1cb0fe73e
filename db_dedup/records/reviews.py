"""The order and the filter of a list of groups for a review."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from db_dedup.records.kinds import Kind

GroupOrder = Literal["size", "newest", "loose"]
GROUP_ORDERS: Final[tuple[GroupOrder, ...]] = get_args(GroupOrder)
"""The largest first; those to which a row was added last first; loose ones first, then by size."""


@dataclass(frozen=True)
class GroupFilter:
    """A filter of groups; an attribute that is None filters nothing.

    Attributes:
        kind: groups with a pair of this kind.
        other_place: groups with a pair whose rows name different places.
        is_loose: loose groups, or the others.
        since: groups with a row whose order value, as a sortable text, is not before this one.
        until: and is before this one.
        column: groups with a row that has `value` in this column.
        value: the whole value in a value column, or a part of the text in a text column.
    """

    kind: Kind | None = None
    other_place: bool | None = None
    is_loose: bool | None = None
    since: str | None = None
    until: str | None = None
    column: str | None = None
    value: str | None = None


EVERY_GROUP: Final = GroupFilter()
