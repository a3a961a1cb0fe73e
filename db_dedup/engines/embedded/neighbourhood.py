"""The rows around a change: as they are stored, and as they will be stored."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from db_dedup.flow.matching.group_changes import SizedGroup
from db_dedup.records.fingerprints import AnswerRow


class RowLink(NamedTuple):
    """A row, and the canonical row that it is an exact duplicate of."""

    id: int
    copy_of: int | None


class RowGroup(NamedTuple):
    """A row and its group; the flags are set for representatives only."""

    id: int
    group_id: int | None
    is_loose: bool | None
    is_abridged: bool | None


class Neighbourhood:
    """Stored rows by id, each as it is in the database and as it will be.

    Rows are loaded as they are needed; loading a row again keeps what has been changed in it.
    """

    def __init__(self) -> None:
        self._stored: dict[int, AnswerRow] = {}
        self._rows: dict[int, AnswerRow] = {}
        self._grouped: set[int] = set()
        self._former: dict[int, SizedGroup] = {}
        self._left: Counter[tuple[int, int | None]] = Counter()

    def load(self, rows: Iterable[AnswerRow]) -> None:
        """Add rows as they are in the database, unless they are loaded already."""
        for row in rows:
            if row.id not in self._rows:
                self._add(row)

    def load_again(self, rows: Iterable[AnswerRow]) -> None:
        """Add rows that have just been written, and replace what is loaded of them."""
        for row in rows:
            self._add(row)

    def forget(self, row_id: int) -> None:
        """Drop a row that is no longer in the database."""
        self._rows.pop(row_id, None)
        row = self._stored.pop(row_id, None)
        if row is not None and row.group_id is not None:
            self._left[row.group_id, None] += 1

    def __getitem__(self, row_id: int) -> AnswerRow:
        """Return a row as it will be stored."""
        return self._rows[row_id]

    def __contains__(self, row_id: int) -> bool:
        """Return whether the row has been loaded."""
        return row_id in self._rows

    def __iter__(self) -> Iterator[AnswerRow]:
        """Yield all rows as they will be stored."""
        return iter(self._rows.values())

    def grouped(self, ids: Iterable[int]) -> list[int]:
        """Return the ids of rows that were in a group when they were loaded, also if they are dropped since.

        All other rows have no stored pairs or links but those of this batch, so no query need look for them.
        """
        return sorted(self._grouped.intersection(ids))

    def link(self, row_id: int, copy_of: int | None) -> None:
        """Make a row an exact duplicate of another one; None makes it canonical."""
        if self._rows[row_id].copy_of != copy_of:
            self._rows[row_id] = self._rows[row_id]._replace(copy_of=copy_of)

    def put_in_group(
        self,
        row_id: int,
        group_id: int | None,
        is_loose: bool | None = None,
        is_abridged: bool | None = None,
    ) -> None:
        """Put a row into a group.

        Args:
            row_id: of the row.
            group_id: of the group's representative; None takes the row out of any group.
            is_loose: of the group, where the row is its representative.
            is_abridged: the same.
        """
        row = self._rows[row_id]
        if (row.group_id, row.is_loose, row.is_abridged) != (group_id, is_loose, is_abridged):
            self._rows[row_id] = row._replace(group_id=group_id, is_loose=is_loose, is_abridged=is_abridged)

    def new_links(self) -> list[RowLink]:
        """Return the links that are not stored yet; the next call leaves them out."""
        changed = [row for row in self if row.copy_of != self._stored[row.id].copy_of]
        for row in changed:
            self._stored[row.id] = self._stored[row.id]._replace(copy_of=row.copy_of)
        return [RowLink(row.id, row.copy_of) for row in changed]

    def new_groups(self) -> list[RowGroup]:
        """Return the groups and flags of the rows whose stored group or flags differ."""
        return [
            RowGroup(row.id, row.group_id, row.is_loose, row.is_abridged)
            for row in self
            if row is not self._stored[row.id] and row != self._stored[row.id]
        ]

    @property
    def former_groups(self) -> Mapping[int, SizedGroup]:
        """Id of a representative -> its group, as they were when they were loaded."""
        return self._former

    def moved(self) -> Counter[tuple[int, int | None]]:
        """Return (former group, new group) -> rows, for rows that were in a group and are not in the same."""
        moved = self._left.copy()
        for row in self:
            before = self._stored[row.id].group_id
            if before is not None and before != row.group_id:
                moved[before, row.group_id] += 1
        return moved

    def _add(self, row: AnswerRow) -> None:
        self._stored[row.id] = self._rows[row.id] = row
        if row.group_id is not None:
            self._grouped.add(row.id)
        # Kept when the row is dropped: a new row, which has no group yet, may get its id.
        if row.group_size is not None:
            self._former[row.id] = SizedGroup(row.row_key, row.group_size)
