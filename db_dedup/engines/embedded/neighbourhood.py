"""The rows around a change: as they are stored, and as they are to be stored."""

from collections.abc import Iterable, Iterator

from db_dedup.store.neighbours import AnswerRow


class Neighbourhood:
    """Stored rows by id, each as it stands in the database and as it will.

    Rows are loaded as they are needed; one that is there already keeps what has become of it.
    """

    def __init__(self) -> None:
        self._stored: dict[int, AnswerRow] = {}
        self._rows: dict[int, AnswerRow] = {}
        self._grouped: set[int] = set()

    def load(self, rows: Iterable[AnswerRow]) -> None:
        """Take in rows as they stand in the database."""
        for row in rows:
            if row.id not in self._rows:
                self._take_in(row)

    def load_anew(self, rows: Iterable[AnswerRow]) -> None:
        """Take in rows that have just been written."""
        for row in rows:
            self._take_in(row)

    def forget(self, row_id: int) -> None:
        """A row is no longer in the database."""
        self._rows.pop(row_id, None)
        self._stored.pop(row_id, None)

    def __getitem__(self, row_id: int) -> AnswerRow:
        """A row as it will be."""
        return self._rows[row_id]

    def __contains__(self, row_id: int) -> bool:
        """Whether the row has been loaded."""
        return row_id in self._rows

    def __iter__(self) -> Iterator[AnswerRow]:
        """All rows, as they will be."""
        return iter(self._rows.values())

    def grouped(self, ids: Iterable[int]) -> list[int]:
        """Those of these rows that were in a group when they were loaded, also if they are forgotten by now.

        Of all others no pair and no copy is stored but those of this batch: nobody need ask for them.
        """
        return sorted(self._grouped.intersection(ids))

    def link(self, row_id: int, copy_of: int | None) -> None:
        """Let a row be a copy of another one, or of none."""
        if self._rows[row_id].copy_of != copy_of:
            self._rows[row_id] = self._rows[row_id]._replace(copy_of=copy_of)

    def put_in_group(
        self,
        row_id: int,
        group_id: int | None,
        is_loose: bool | None = None,
        is_abridged: bool | None = None,
    ) -> None:
        """Let a row be in a group; the flags are for its representative."""
        if self._rows[row_id][6:9] != (group_id, is_loose, is_abridged):
            self._rows[row_id] = self._rows[row_id]._replace(
                group_id=group_id, is_loose=is_loose, is_abridged=is_abridged
            )

    def new_links(self) -> list[tuple[int, int | None]]:
        """(id, copy_of) of the rows whose link is not the stored one; from now on it is."""
        changed = [row for row in self if row.copy_of != self._stored[row.id].copy_of]
        for row in changed:
            self._stored[row.id] = self._stored[row.id]._replace(copy_of=row.copy_of)
        return [(row.id, row.copy_of) for row in changed]

    def new_groups(self) -> list[tuple[int, int | None, bool | None, bool | None]]:
        """(id, group, is_loose, is_abridged) of the rows for which they are not the stored ones."""
        return [
            (row.id, row.group_id, row.is_loose, row.is_abridged)
            for row in self
            if row is not self._stored[row.id] and row != self._stored[row.id]
        ]

    def _take_in(self, row: AnswerRow) -> None:
        self._stored[row.id] = self._rows[row.id] = row
        if row.group_id is not None:
            self._grouped.add(row.id)
