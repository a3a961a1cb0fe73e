"""The history of groups in sentences, which can be translated."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from db_dedup.plurals import counted
from db_dedup.present.visible import visible
from db_dedup.records.group_history import ChangeKind, GroupChange, GroupHistory
from db_dedup.translation import Phrase

_KINDS: Final[dict[ChangeKind, str]] = {
    "merged": "merged",
    "split": "split",
    "new_representative": "new representative",
    "ended": "ended",
}
_SENTENCES: Final[dict[ChangeKind, str]] = {
    "merged": "{at}, {by}: group {old} ({size}) was merged into group {new} ({new_size})",
    "split": "{at}, {by}: group {old} ({size}) was split: {moved} of them in group {new} ({new_size})",
    "new_representative": "{at}, {by}: group {old} ({size}) got another representative and is group {new} "
    "({new_size})",
    "ended": "{at}, {by}: group {old} ({size}) ended: none of its rows is in a group",
}
_STILL: Final = "group {id} is a group now ({size})"
_LEADS_TO: Final = "group {id} is now in group {group} ({size})"
_NOTHING_LEFT: Final = "group {id} is no group now"
_ROW_IS_IN: Final = "row {id} is in group {group} now"
_UNKNOWN: Final = "no group has the id {id}, and none had it as long as changes are kept"


def history_lines(history: GroupHistory) -> Iterator[Phrase]:
    """Yield what has become of a group: where it is now, then each change."""
    shown = visible(history.group_id)
    for group in history.groups:
        size = counted(group.size, "row")
        if group.group_id == history.group_id:
            yield Phrase(_STILL, id=shown, size=size)
        else:
            yield Phrase(_LEADS_TO, id=shown, group=visible(group.group_id), size=size)
    if not history.groups:
        yield Phrase(_NOTHING_LEFT if history.changes else _UNKNOWN, id=shown)
    other = history.row_group_id
    if other is not None and other not in {group.group_id for group in history.groups}:
        yield Phrase(_ROW_IS_IN, id=shown, group=visible(other))
    yield from map(_change_line, history.changes)
    yield from (_change_line(change) for change in reversed(history.origins) if change not in history.changes)


def _change_line(change: GroupChange) -> Phrase:
    """Return a sentence about one change."""
    return Phrase(
        _SENTENCES[change.kind],
        at=moment(change.changed_at),
        by=author(change.scan),
        old=visible(change.group_id),
        size=counted(change.size, "row"),
        moved=f"{change.moved:,}",
        new=visible(change.new_group_id or ""),
        new_size=counted(change.new_size or 0, "row"),
    )


def kind_word(kind: ChangeKind) -> Phrase:
    """Return the kind of a change in words."""
    return Phrase(_KINDS[kind])


def author(scan: int | None) -> Phrase:
    """Return what made a change."""
    return Phrase("worker") if scan is None else Phrase("scan {number}", number=scan)


def moment(at: datetime) -> str:
    """Return a time to the minute."""
    return f"{at:%Y-%m-%d %H:%M} UTC"
