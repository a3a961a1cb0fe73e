"""Write the answer of a scan: only what differs from what is stored."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.matching.pairs import Pairs
from db_dedup.jobs.scan.answer_changes import AnswerChanges, count_changes
from db_dedup.jobs.scan.changes_by_recipe import changes_by_recipe
from db_dedup.jobs.scan.regrouping import regrouped, regrouped_by_recipe
from db_dedup.jobs.scan.row_answers import NOT_SET, AnswerValues, RowAnswers, side_by_side
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.jobs.scan.short_transactions import Writing
from db_dedup.jobs.scan.sketch_index import ROWS_WITH_SKETCHES, SketchDifference
from db_dedup.jobs.scan.writing_ahead import StoredIds, WrittenAhead
from db_dedup.records.group_history import ChangedGroup
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.found_at import FoundTimes, nothing_found
from db_dedup.store.pairs import (
    NO_PAIRS,
    StoredPairs,
    delete_pairs,
    differing_pairs,
    insert_pairs,
    read_pairs,
)
from db_dedup.store.reader import Reader
from db_dedup.store.sketches import drop_entries

_LINK_AND_GROUP = AnswerValues._fields[1:]
_GROUP = AnswerValues._fields[2:]


@dataclass(frozen=True)
class FoundPairs:
    """The pairs of a scan, of which none is stored; their rows get ids part by part, as they are written.

    Attributes:
        ids: int64[n], of the rows of the scan, in its order.
        pairs: of these rows.
    """

    ids: NDArray[np.int64]
    pairs: Pairs

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return self.pairs.left.size

    def only(self, part: slice) -> StoredPairs:
        """Return some of them, as they are stored."""
        found = self.pairs
        return StoredPairs(
            self.ids[found.left[part]],
            self.ids[found.right[part]],
            found.distances[part],
            found.similarities[part],
            found.kinds[part],
        )


@dataclass(frozen=True)
class AnswerDifference:
    """In what the answer of a scan differs from what is stored under its recipe.

    Attributes:
        gone: ids of rows that are no longer in the user's table.
        lost: stored pairs that the scan did not find.
        gained: pairs that are not stored.
        before: the stored answer of the rows for which it differs.
        after: the answer of the scan of the same rows in the same order.
        sketches: the difference of the sketches and their index; None if they have been written already.
        changes: the difference from the answer that is shown, in numbers as a person counts.
        regrouped: what becomes of the groups that are shown.
    """

    gone: list[int]
    lost: StoredPairs
    gained: StoredPairs | FoundPairs
    before: RowAnswers
    after: RowAnswers
    sketches: SketchDifference | None
    changes: AnswerChanges
    regrouped: list[ChangedGroup]

    @classmethod
    def of(
        cls,
        reader: Reader,
        store: FingerprintStore,
        scanned: ScannedTable,
        changed: Collection[str],
        *,
        serves: bool,
        ahead: WrittenAhead | None = None,
        shown: FingerprintStore | None = None,
    ) -> "AnswerDifference":
        """Compare an answer with what is stored; every row of the scan must be stored already.

        Args:
            reader: of our tables.
            store: the table and the recipe.
            scanned: the answer.
            changed: row keys of the rows whose text is another one than that of their stored sketches.
            serves: the recipe serves already. Otherwise nothing is stored of it but fingerprints with their
                sketches and, from a scan that was interrupted, exact duplicates and groups.
            ahead: what has been written of the answer before its pairs were known.
            shown: the recipe that serves, if it is another one.
        """
        ids, gone = ahead.ids if ahead else StoredIds.read(reader, store, scanned.row_keys)
        found = FoundPairs(ids, scanned.matches.pairs)
        lost, gained = _differing_pairs(reader, store, found) if serves else (NO_PAIRS, found)
        stored = ahead.answers if ahead else RowAnswers.read(store, reader)
        answer = RowAnswers.of(ids, scanned)
        before = stored.only(~np.isin(stored.ids, gone)).aligned(answer.ids)
        differs = before.differs(answer)
        if shown:
            changes = changes_by_recipe(reader, shown, scanned, ids)
            groups = regrouped_by_recipe(reader, shown, scanned)
        else:
            was, becomes = side_by_side(stored if serves else stored.only(slice(0)), answer)
            changes = _changes(lost, gained, was, becomes)
            groups = regrouped(reader, store, was, becomes) if serves else []
        return cls(
            gone,
            lost,
            gained,
            before.only(differs),
            answer.only(differs),
            None
            if ahead
            else SketchDifference.of(
                reader, store, ids, scanned.table, scanned.matches.copy_of, changed, serves=serves
            ),
            changes,
            groups,
        )

    @property
    def count(self) -> int:
        """How many rows of all our tables are written."""
        of_rows = len(self.gone) + self.after.ids.size
        of_sketches = self.sketches.count if self.sketches else 0
        return of_rows + self.lost.count + self.gained.count + of_sketches

    def write(
        self, writing: Writing, store: FingerprintStore, now: datetime, found: FoundTimes | None = None
    ) -> None:
        """Make the stored answer that of the scan.

        Args:
            writing: to write in.
            store: the table and the recipe.
            now: the time of what is found for the first time.
            found: when the rest was found; None if everything is new.
        """
        found = nothing_found() if found is None else found
        for connection, part in writing.slices(self.lost.count):
            delete_pairs(connection, store, self.lost.only(part))
        for connection, part in writing.slices(self.gained.count):
            gained = self.gained.only(part)
            insert_pairs(connection, store, gained, found.of(gained.id_a, gained.id_b, now))
        for connection, ids in writing.parts(self.gone, ROWS_WITH_SKETCHES):
            drop_entries(connection, store, ids)
            store.delete_rows(connection, ids)
        _write_groups(writing, store, self.before, self.after, found, now)
        if self.sketches:
            self.sketches.write(writing, store)


def _differing_pairs(
    reader: Reader, store: FingerprintStore, found: FoundPairs
) -> tuple[StoredPairs, StoredPairs]:
    """Return (the stored pairs that were not found, the found pairs that are not stored)."""
    with reader.open() as connection:
        stored = read_pairs(connection, store)
    return differing_pairs(stored, found.only(slice(None)))


def _changes(
    lost: StoredPairs, gained: StoredPairs | FoundPairs, before: RowAnswers, after: RowAnswers
) -> AnswerChanges:
    """Count the difference; `before` and `after` are of all rows."""
    differs = before.differs(after)
    return count_changes(gained.count, lost.count, before.only(differs), after.only(differs))


def _write_groups(
    writing: Writing,
    store: FingerprintStore,
    before: RowAnswers,
    after: RowAnswers,
    found: FoundTimes,
    now: datetime,
) -> None:
    """Write canonical rows and groups; `found_at` of a row changes only with its canonical row."""
    is_linked, was_linked = after.copy_of != NOT_SET, before.copy_of != NOT_SET
    is_new_link = is_linked & (before.copy_of != after.copy_of)
    is_link_gone = ~is_linked & was_linked
    table, update = store.tables.fingerprint, store.dialect.bulk_update
    new, gone = after.only(is_new_link), after.only(is_link_gone)
    times: tuple[tuple[RowAnswers, Sequence[datetime | None]], ...] = (
        (new, found.of(new.ids, new.copy_of, now)),
        (gone, [None] * gone.ids.size),
    )
    for chosen, found_at in times:
        for connection, linked in writing.parts(
            [(*row, at) for row, at in zip(chosen.values(), found_at, strict=True)]
        ):
            update(connection, table, "id", (*_LINK_AND_GROUP, "found_at"), linked)
    # The canonical row of the others stays: to write it again would change each index of a block.
    others = after.only(~is_new_link & ~is_link_gone)
    for connection, rows in writing.parts((row_id, *group) for row_id, _, *group in others.values()):
        update(connection, table, "id", _GROUP, rows)
