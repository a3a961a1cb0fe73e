"""Write a scan's answer: only what differs from what is stored."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.embedded.table_scan import ScannedTable
from db_dedup.flow.sketches import Sketches, entries
from db_dedup.jobs.answer_changes import AnswerChanges, count_changes
from db_dedup.jobs.pieces import Writing
from db_dedup.store.bands import drop_bands, put_entries, sketched_ids, write_sketches
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.pairs import (
    NO_PAIRS,
    StoredPairs,
    delete_pairs,
    differing_pairs,
    insert_pairs,
    read_pairs,
)
from db_dedup.store.reader import Reader

_NONE = -1
_ROWS_WITH_SKETCHES = 1_000
"""At a time: each has dozens of entries all over the band table, and more would show no progress for long."""
_GROUP_COLUMNS = ("copy_of", "group_id", "is_loose", "is_abridged", "group_size")


@dataclass(frozen=True)
class _Bands:
    """What is to be written of the rows' sketches and their entries in the band table.

    Attributes:
        dropped: ids of rows that lose both, or get others.
        emptied: ids of rows that have a sketch without entries, and lose it.
        gained: int64[n, 2], (id, place among the sketches) of rows that get a sketch.
        entered: int64[n, 2], the same of rows that get entries.
        sketches: those of the scan.
    """

    dropped: list[int]
    emptied: list[int]
    gained: NDArray[np.int64]
    entered: NDArray[np.int64]
    sketches: Sketches

    @property
    def count(self) -> int:
        """How many rows and entries are written."""
        entry_count = int(self.sketches.counts[self.entered[:, 1]].sum())
        return len(self.dropped) + len(self.emptied) + len(self.gained) + entry_count


@dataclass(frozen=True)
class AnswerDifference:
    """In what the answer of a scan differs from what is stored under its recipe.

    Attributes:
        gone: ids of rows that are no longer in the user's table.
        lost: stored pairs that are none any more.
        gained: pairs that are not stored.
        before: int64[n, 6], copies and groups of the rows where they differ, in the form of
            `FingerprintStore.read_answer`.
        after: int64[n, 6], the same rows in the same order as they are to be.
        changes: the difference from the answer that is shown, in numbers as a person counts.
    """

    gone: list[int]
    lost: StoredPairs
    gained: StoredPairs
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    bands: _Bands
    changes: AnswerChanges

    @classmethod
    def of(
        cls,
        reader: Reader,
        store: FingerprintStore,
        scanned: ScannedTable,
        changed: Collection[str],
        *,
        serves: bool,
    ) -> "AnswerDifference":
        """Compare; every row of the scan is stored already.

        Args:
            reader: of our tables.
            store: the table and the recipe.
            scanned: the answer.
            changed: row keys of the rows whose text is another one than that of their stored sketches.
            serves: the recipe serves already. Otherwise nothing is stored of it but fingerprints with their
                sketches and, from a scan that broke off, copies and groups.
        """
        id_of = store.read_ids(reader)
        ids = np.array([id_of.pop(row_key) for row_key in scanned.row_keys], np.int64)
        gone = sorted(id_of.values())
        found = scanned.matches.pairs
        new_pairs = StoredPairs(ids[found.left], ids[found.right], found.distances, found.similarities)
        lost, gained = differing_pairs(_stored_pairs(reader, store) if serves else NO_PAIRS, new_pairs)
        old_answer, answer = store.read_answer(reader), _answer(ids, scanned)
        is_gone = np.isin(old_answer[:, 0], gone)
        before = _aligned(old_answer[~is_gone], answer[:, 0])
        differs = np.any(before != answer, axis=1)
        return cls(
            gone,
            lost,
            gained,
            before[differs],
            answer[differs],
            _differing_bands(reader, store, ids, scanned, changed, serves),
            _changes(lost, gained, old_answer if serves else old_answer[:0], answer),
        )

    @property
    def count(self) -> int:
        """How many rows of all our tables are written."""
        of_rows = len(self.gone) + len(self.after)
        return of_rows + self.lost.count + self.gained.count + self.bands.count

    def write(self, writing: Writing, store: FingerprintStore, now: datetime) -> None:
        """Make the stored answer that of the scan."""
        for connection, part in writing.slices(self.lost.count):
            delete_pairs(connection, store, self.lost.only(part))
        for connection, part in writing.slices(self.gained.count):
            insert_pairs(connection, store, self.gained.only(part), now)
        for connection, ids in writing.parts(self.gone, _ROWS_WITH_SKETCHES):
            drop_bands(connection, store, ids)
            store.delete_rows(connection, ids)
        _write_groups(writing, store, self.before, self.after, now)
        _write_bands(writing, store, self.bands)


def _stored_pairs(reader: Reader, store: FingerprintStore) -> StoredPairs:
    with reader.open() as connection:
        return read_pairs(connection, store)


def _changes(
    lost: StoredPairs, gained: StoredPairs, shown: NDArray[np.int64], answer: NDArray[np.int64]
) -> AnswerChanges:
    """Count the difference; `shown` and `answer` are copies and groups before and after."""
    ids = np.union1d(shown[:, 0], answer[:, 0])
    before, after = _aligned(shown, ids), _aligned(answer, ids)
    differs = np.any(before != after, axis=1)
    return count_changes(gained.count, lost.count, before[differs], after[differs])


def _differing_bands(
    reader: Reader,
    store: FingerprintStore,
    ids: NDArray[np.int64],
    scanned: ScannedTable,
    changed: Collection[str],
    serves: bool,
) -> _Bands:
    """Rows that take part in pairs have bands, if the rule asks for them; no others have."""
    has_sketch = np.isin(ids, sketched_ids(reader, store))
    has_entries = has_sketch if serves else np.zeros(ids.size, np.bool_)
    table, wants_bands = scanned.table, wanted_bands(scanned)
    is_changed = np.array([row_key in changed for row_key in scanned.row_keys], np.bool_)
    gaining, entering = (wants_bands & (is_changed | ~has) for has in (has_sketch, has_entries))
    by_place = np.stack([ids, table.sketch_places], axis=1)
    return _Bands(
        dropped=ids[has_entries & (is_changed | ~wants_bands)].tolist(),
        emptied=ids[has_sketch & ~has_entries & ~wants_bands].tolist(),
        gained=by_place[gaining],
        entered=by_place[entering],
        sketches=table.sketches,
    )


def _write_bands(writing: Writing, store: FingerprintStore, found: _Bands) -> None:
    for connection, ids in writing.parts(found.dropped, _ROWS_WITH_SKETCHES):
        drop_bands(connection, store, ids)
    for connection, ids in writing.parts(found.emptied):
        write_sketches(connection, store, [(row_id, None) for row_id in ids])
    for connection, rows in writing.parts(found.gained.tolist()):
        sketches = [(row_id, found.sketches.bytes_of(place)) for row_id, place in rows]
        write_sketches(connection, store, sketches)
    owners, places = found.entered.T
    writing.pause()  # before each part of the entries, which takes a while to sort
    for values, rows_of in entries(found.sketches, places):
        for connection, part in writing.slices(values.size):
            put_entries(connection, store, [(values[part], owners[rows_of[part]])])
        writing.pause()


def wanted_bands(scanned: ScannedTable) -> NDArray[np.bool_]:
    """bool[n]: the rows that are to have bands."""
    table = scanned.table
    takes_part = (scanned.matches.copy_of == _NONE) & table.has_fingerprint
    is_wanted: NDArray[np.bool_] = takes_part & (table.sketch_places != _NONE)
    return is_wanted


def _write_groups(
    writing: Writing,
    store: FingerprintStore,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    now: datetime,
) -> None:
    """Write copies and groups; when a row was found to be a copy changes with its link alone."""
    is_new_link = (after[:, 1] != _NONE) & (before[:, 1] != after[:, 1])
    is_link_gone = (after[:, 1] == _NONE) & (before[:, 1] != _NONE)
    table = store.tables.fingerprint
    for chosen, found_at in ((is_new_link, now), (is_link_gone, None)):
        for connection, rows in writing.parts(after[chosen].tolist()):
            linked = [(*_plain(row), found_at) for row in rows]
            store.dialect.bulk_update(connection, table, "id", (*_GROUP_COLUMNS, "found_at"), linked)
    for connection, rows in writing.parts(after[~is_new_link & ~is_link_gone].tolist()):
        store.dialect.bulk_update(connection, table, "id", _GROUP_COLUMNS, map(_plain, rows))


def _answer(ids: NDArray[np.int64], scanned: ScannedTable) -> NDArray[np.int64]:
    """int64[n, 6] as `FingerprintStore.read_answer` gives it, for all rows, ascending by id."""
    matches = scanned.matches
    answer = np.full((ids.size, 6), _NONE, np.int64)
    answer[:, 0] = ids
    for column, rows in ((1, matches.copy_of), (2, matches.group_of)):
        is_set = rows >= 0
        answer[is_set, column] = ids[rows[is_set]]
    is_representative = matches.group_of == np.arange(ids.size)
    answer[is_representative, 3] = matches.is_loose[is_representative]
    answer[is_representative, 4] = matches.is_abridged[is_representative]
    sizes = np.bincount(matches.group_of[matches.group_of != _NONE], minlength=ids.size)
    answer[is_representative, 5] = sizes[is_representative]
    return answer[np.argsort(ids)]


def _aligned(old: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The old answer for these ascending ids, NULL where there was none."""
    aligned = np.full((ids.size, 6), _NONE, np.int64)
    aligned[:, 0] = ids
    aligned[np.searchsorted(ids, old[:, 0])] = old
    return aligned


def _plain(row: list[int]) -> tuple[int | bool | None, ...]:
    """A row of an answer as the database takes it."""
    row_id, copy_of, group_id, is_loose, is_abridged, size = row
    return (
        row_id,
        None if copy_of == _NONE else copy_of,
        None if group_id == _NONE else group_id,
        None if is_loose == _NONE else bool(is_loose),
        None if is_abridged == _NONE else bool(is_abridged),
        None if size == _NONE else size,
    )
