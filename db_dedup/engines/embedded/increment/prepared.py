"""What can be computed of a batch before the table is locked: fingerprints, candidates and their decisions.

A transaction that writes keeps others out: in SQLite every other writer of the file, elsewhere the blocking
checks. So the worker reads the changed rows and matches them first, many at once, in short reads. It holds
the lock for the writing alone. Nothing here is trusted when the lock is taken: the rows are read again, and a
fingerprint is used only for equal values. The pairs are used only while the answer has the version that they
were computed for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from sqlalchemy import Connection

from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.pair_search import FoundPairs, PairSearch
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter, joined_rows
from db_dedup.flow.stored_rows import row_fingerprints
from db_dedup.records import SourceRow
from db_dedup.records.fingerprints import AnswerRow, RowFingerprint
from db_dedup.store import neighbours
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.own_entries import NewEntries
from db_dedup.store.source import Source

_ANSWER_COLUMNS: Final = len(AnswerRow._fields) - 6


@dataclass(frozen=True)
class Prepared:
    """Rows that were read and fingerprinted ahead, and the duplicates found for them.

    Attributes:
        rows: the rows as they were read.
        known: for each row its stored digest at that time.
        done: what was computed of them.
        places: row key -> position.
        pairs: digest of a searched row -> its duplicates among the stored rows and the searched ones. Among
            these are rows that will become canonical, because the one that they equal has changed.
        stale: row keys of candidates that differ from what is stored of them; rows of `rows` are not among
            them, and the first batch reports them all.
        new_entries: digest of a searched row -> what is to be written of its sketch, if that is not all.
        since: canonical rows that were written since, by id; a row of a batch may be their duplicate, too.
        outdated: ids of rows that were written since or stopped being canonical: pairs with them are void.
    """

    rows: Sequence[SourceRow]
    known: Sequence[bytes | None]
    done: FingerprintedRows
    places: Mapping[str, int]
    pairs: Mapping[bytes, FoundPairs] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()
    new_entries: Mapping[bytes, NewEntries] = field(default_factory=dict)
    since: dict[int, AnswerRow] = field(default_factory=dict)
    outdated: set[int] = field(default_factory=set)

    def note_written(self, searched: Collection[AnswerRow], affected: Collection[int]) -> None:
        """Note what a batch has written.

        Args:
            searched: the canonical rows whose pairs it searched.
            affected: ids of all rows that it wrote, and of those that stopped being canonical.
        """
        self.outdated.update(affected)
        for row_id in affected:
            self.since.pop(row_id, None)
        self.since.update({row.id: row for row in searched})

    def fingerprint(
        self, fingerprinter: Fingerprinter, rows: Sequence[SourceRow], known: Sequence[bytes | None]
    ) -> FingerprintedRows:
        """Return what `Fingerprinter.fingerprint` returns of rows; only those that differ are computed."""
        places = [self._place(row, before) for row, before in zip(rows, known, strict=True)]
        if places == list(range(len(self.rows))):
            return self.done
        if None not in places:
            return _taken(self.done, [place for place in places if place is not None])
        new = [i for i, place in enumerate(places) if place is None]
        fresh = fingerprinter.fingerprint(
            [rows[i].values for i in new], [rows[i].within for i in new], [known[i] for i in new]
        )
        both = joined_rows([self.done, fresh])
        number_of = {i: len(self.rows) + number for number, i in enumerate(new)}
        return _taken(both, [number_of[i] if place is None else place for i, place in enumerate(places)])

    def _place(self, row: SourceRow, known: bytes | None) -> int | None:
        place = self.places.get(row.row_key)
        if place is None:
            return None
        before = self.rows[place]
        is_equal = before.values == row.values and before.within == row.within and self.known[place] == known
        return place if is_equal else None


def prepare(
    connection: Connection,
    store: FingerprintStore,
    source: Source,
    fingerprinter: Fingerprinter,
    texts: CandidateTexts,
    search: PairSearch,
    row_keys: Sequence[str],
    again: Collection[str],
) -> Prepared:
    """Read, fingerprint and match rows that may have changed.

    Args:
        connection: used for nothing but short reads. Its transaction is ended before each long computation.
        store: the stored answer.
        source: the user's table.
        fingerprinter: of the stored recipe.
        texts: keeps the features that are read.
        search: over the same connection and texts.
        row_keys: of the rows.
        again: keys of rows that are searched even if they have not changed.
    """
    stored = {row.row_key: row for row in neighbours.rows_of_keys(connection, store, row_keys)}
    rows = list(source.read_rows(connection, row_keys))
    connection.rollback()
    before = [stored.get(row.row_key) for row in rows]
    known = [old and old.digest for old in before]
    done = fingerprinter.fingerprint([row.values for row in rows], [row.within for row in rows], known)
    done.take_stored(before)
    texts.add(rows, done)
    searched = _rows_to_search(connection, store, stored, row_fingerprints(rows, done), again)
    # Numbers below zero: no stored row has them.
    asked = [_unsaved(row, -1 - i) for i, row in enumerate(searched) if row.fingerprint is not None]
    texts.read(connection, asked)
    own_ids = {row.id: old.id for row in asked if (old := stored.get(row.row_key)) is not None}
    found = search.find_ahead(asked, own_ids)
    new = {row.digest: search.new_entries[row.id] for row in asked if row.id in search.new_entries}
    connection.rollback()
    places = {row.row_key: place for place, row in enumerate(rows)}
    # A row may have changed before its features were read: nothing was compared with its digest then, which
    # an exact duplicate of it may still have.
    is_compared = (
        (row, of_row) for row, of_row in zip(asked, found, strict=True) if not texts.is_left_out(row)
    )
    pairs = {row.digest: of_row for row, of_row in is_compared}
    return Prepared(rows, known, done, places, pairs, frozenset(texts.stale.difference(row_keys)), new)


def _rows_to_search(
    connection: Connection,
    store: FingerprintStore,
    stored: Mapping[str, AnswerRow],
    current: Sequence[RowFingerprint],
    again: Collection[str],
) -> Collection[AnswerRow | RowFingerprint]:
    """Return one row of each text whose pairs are to be searched.

    These are the rows that are new or have changed. If a row has left its class of exact duplicates, another
    row of the class may become canonical, so it is searched, too.

    Args:
        connection: for reading.
        store: the stored answer.
        stored: row key -> the stored row.
        current: the rows as they are now.
        again: keys of rows that are searched even if they have not changed.
    """
    digests = {row.row_key: row.digest for row in current}
    left = [row.id for key, row in stored.items() if digests.get(key) != row.digest]
    next_ones = neighbours.one_exact_duplicate_each(connection, store, left)
    searched: dict[bytes, AnswerRow | RowFingerprint] = {row.digest: row for row in next_ones}
    for row in current:
        old = stored.get(row.row_key)
        if old is None or not old.is_of(row) or row.row_key in again:
            searched[row.digest] = row
    return searched.values()


def _unsaved(row: RowFingerprint | AnswerRow, row_id: int) -> AnswerRow:
    of_row = (row.row_key, row.order_value, row.fingerprint, row.digest, row.form)
    return AnswerRow(row_id, *of_row, *[None] * _ANSWER_COLUMNS)


def _taken(done: FingerprintedRows, places: Sequence[int]) -> FingerprintedRows:
    """Return some of the rows, in this order."""
    rows = np.array(places, np.int64)
    return FingerprintedRows(
        done.fingerprints[rows],
        done.has_fingerprint[rows],
        [done.digests[i] for i in places],
        done.features.take(rows),
        done.details.take(rows),
        done.sketches.take(rows),
        done.is_known[rows],
        done.framed[rows],
        done.forms[rows],
        done.compares_grams,
    )
