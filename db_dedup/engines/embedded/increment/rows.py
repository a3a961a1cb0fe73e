"""The first step of a batch: read the rows that may have changed, and update what is stored of them.

The changed texts are written after the second step, which decides which rows have a sketch.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.flow.pipeline import FingerprintedRows
from db_dedup.flow.stored_rows import row_fingerprints
from db_dedup.records import SourceRow
from db_dedup.records.fingerprints import AnswerRow, RowFingerprint
from db_dedup.store import neighbours
from db_dedup.store.own_entries import NewEntries
from db_dedup.store.sketches import drop_entries, drop_sketches, put_sketches


@dataclass(frozen=True)
class RowChanges:
    """What has changed among the rows of a batch.

    Attributes:
        outdated: stored rows that are no longer in the table or have changed.
        current: the new state of rows that are new or have changed.
        read: every row of the batch that is in the table.
        fingerprinted: what was computed of `read`, in its order.
    """

    outdated: Sequence[AnswerRow]
    current: Sequence[RowFingerprint]
    read: Sequence[SourceRow]
    fingerprinted: FingerprintedRows

    @property
    def is_empty(self) -> bool:
        """Whether no row has changed."""
        return not self.outdated and not self.current

    def moved_ids(self) -> set[int]:
        """Return the ids of the outdated rows that are gone or differ from what is stored.

        Of others only the pairs are searched again.
        """
        current = {row.row_key: row for row in self.current}
        return {
            old.id for old in self.outdated if (row := current.get(old.row_key)) is None or not old.is_of(row)
        }


def read_changes(
    scope: BatchScope, row_keys: Sequence[str], again: frozenset[str], written: frozenset[str]
) -> RowChanges:
    """Read and fingerprint the rows of these keys, and compare them with what is stored.

    Args:
        scope: the batch.
        row_keys: of the rows that may have changed.
        again: keys of rows that count as changed even if they have not.
        written: keys of rows that should be in the table.

    Raises:
        RowKeyError: a row of the table is not found by its key, or two rows have the same key.
    """
    stored = {row.row_key: row for row in neighbours.rows_of_keys(scope.connection, scope.store, row_keys)}
    read = list(scope.source.read_rows(scope.connection, row_keys))
    scope.source.require_gone(scope.connection, written.difference(row.row_key for row in read))
    done = _fingerprinted(scope, read, stored)
    current = []
    for row in row_fingerprints(read, done, with_sets=True):
        old = stored.get(row.row_key)
        if old is None or not old.is_of(row) or row.row_key in again:
            current.append(row)
        else:
            del stored[row.row_key]
    return RowChanges(list(stored.values()), current, read, done)


def _fingerprinted(
    scope: BatchScope, read: Sequence[SourceRow], stored: dict[str, AnswerRow]
) -> FingerprintedRows:
    """Fingerprint these rows; of a text whose digest is the stored one, take the stored fingerprint."""
    before = [stored.get(row.row_key) for row in read]
    known = [old and old.digest for old in before]
    if scope.prepared is not None:
        done = scope.prepared.fingerprint(scope.fingerprinter, read, known)
    else:
        done = scope.fingerprinter.fingerprint(
            [row.values for row in read], [row.within for row in read], known
        )
    done.take_stored(before)
    return done


@dataclass(frozen=True)
class WrittenRows:
    """The rows that are new or have changed.

    Attributes:
        ids: of all of them.
        new_texts: the rows whose text has changed, each as it is stored and as it is to be stored.
        sketched: ids of new rows that are stored with their sketch, but without its entries.
    """

    ids: frozenset[int]
    new_texts: Sequence[tuple[AnswerRow, RowFingerprint]]
    sketched: frozenset[int]


def write_rows(scope: BatchScope, changes: RowChanges) -> WrittenRows:
    """Update what is stored of the changed rows.

    A row whose text has changed loses its single entries and is updated in memory alone: `write_texts` writes
    it, once, with its new sketch.
    """
    store, connection = scope.store, scope.connection
    before = {row.row_key: row for row in changes.outdated}
    new = [row for row in changes.current if row.row_key not in before]
    changed = [(before.pop(row.row_key), row) for row in changes.current if row.row_key in before]
    gone = [row.id for row in before.values()]
    new_texts = [(old, row) for old, row in changed if old.digest != row.digest]
    same_texts = [(old, row) for old, row in changed if old.digest == row.digest]
    if scope.index is not None:
        scope.index.remove([row.id for row in changes.outdated])
    if scope.watched.rule.sketches:
        drop_entries(connection, store, [*gone, *(old.id for old, _ in new_texts)])
        drop_sketches(connection, store, [old.id for old, _ in same_texts])
    store.delete_rows(connection, gone)
    for row_id in gone:
        scope.rows.forget(row_id)
    store.update_rows(connection, same_texts)
    scope.texts.add(changes.read, changes.fingerprinted)
    sketches = _sketches_of_new(scope, changes, new)
    store.insert_texts(connection, new, sketches)
    inserted = neighbours.rows_of_keys(connection, store, [row.row_key for row in new])
    written = [*(old.updated(row) for old, row in changed), *inserted]
    scope.rows.load_again(written)
    sketched = frozenset(row.id for row in inserted if row.row_key in sketches)
    return WrittenRows(frozenset(row.id for row in written), new_texts, sketched)


def _sketches_of_new(
    scope: BatchScope, changes: RowChanges, new: Sequence[RowFingerprint]
) -> dict[str, bytes]:
    """Return row key -> sketch, of the new rows with a text that no other row has: they become canonical.

    Whether others do is known only when they have an id.
    """
    if not scope.watched.rule.sketches:
        return {}
    count = Counter(row.digest for row in scope.rows)
    count.update(row.digest for row in changes.current)
    places = (
        (row.row_key, scope.texts.place(row.digest))
        for row in new
        if row.fingerprint is not None and count[row.digest] == 1
    )
    computed = scope.texts.sketches()
    return {row_key: computed.bytes_of(place) for row_key, place in places if place is not None}


def write_texts(scope: BatchScope, written: WrittenRows, searched: Collection[int]) -> dict[int, int]:
    """Write the rows whose text has changed, and the sketches of the rows that are searched.

    Args:
        scope: the batch, the canonical rows linked.
        written: the rows that are new or have changed.
        searched: ids of the canonical rows whose pairs are to be searched.

    Returns:
        id -> place among the texts, of the rows that have a sketch.
    """
    places: dict[int, int] = {}
    sketches: dict[int, bytes] = {}
    asked: Sequence[AnswerRow] = ()
    if scope.watched.rule.sketches:
        asked = scope.searchable(searched)
        scope.texts.read(scope.connection, asked)
        found = ((row.id, scope.texts.place(row.digest)) for row in asked)
        places = {row_id: place for row_id, place in found if place is not None}
        computed = scope.texts.sketches()
        sketches = {row_id: computed.bytes_of(place) for row_id, place in places.items()}
    scope.store.update_texts(scope.connection, written.new_texts, sketches)
    stored = written.sketched.union(old.id for old, _ in written.new_texts)
    put_sketches(scope.connection, scope.store, sketches, stored, _new_entries(scope, asked, places))
    scope.texts.index.single.add(sketches)
    return places


def _new_entries(scope: BatchScope, asked: Iterable[AnswerRow], places: Collection[int]) -> list[NewEntries]:
    """Return what is to be written of the sketches of rows with a place that the segments have a part of."""
    if scope.prepared is None:
        return []
    found = ((row, scope.prepared.new_entries.get(row.digest)) for row in asked if row.id in places)
    return [new for row, new in found if new is not None and new.row_id == row.id]
