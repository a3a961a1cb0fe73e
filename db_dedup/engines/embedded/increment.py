"""Incremental processing of some changed rows: what a full scan would find now, worked out around them alone.

Copies, pairs and groups of the rows that changed are made anew, and of the rows they touch; nothing else is
read or written. All of it happens in the caller's transaction, which must keep every other matcher of the
table out: of two that ran at once, neither would see the other's rows.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

import numpy as np
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.group_match import match_rows
from db_dedup.engines.embedded.neighbourhood import Neighbourhood
from db_dedup.engines.embedded.pair_search import PairSearch, oriented
from db_dedup.engines.embedded.regrouping import Group, Head, regroup
from db_dedup.engines.fingerprinter import Fingerprinter, row_fingerprints
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.flow.fingerprint_index import FingerprintIndex
from db_dedup.store import neighbours
from db_dedup.store.bands import drop_bands, put_bands
from db_dedup.store.fingerprints import FingerprintStore, RowFingerprint
from db_dedup.store.neighbours import AnswerRow
from db_dedup.store.ordering import Receipt, receipt
from db_dedup.store.pairs import StoredPairs, read_pairs_of, replace_pairs
from db_dedup.store.source import Source
from db_dedup.store.verdicts import DigestPair, rejected_among


class Increment:
    """Applies changes of one table under one recipe.

    Attributes:
        index: all fingerprints in memory, kept up to date; without it each search asks the database.
    """

    def __init__(
        self,
        watched: WatchedTable,
        store: FingerprintStore,
        source: Source,
        fingerprinter: Fingerprinter,
        index: FingerprintIndex | None = None,
    ) -> None:
        self.watched, self.store, self.source = watched, store, source
        self.fingerprinter = fingerprinter
        self.families = [column.family for column in source.key_columns]
        self.index = index

    def apply(
        self,
        connection: Connection,
        row_keys: Collection[str],
        now: datetime,
        again: Collection[str] = (),
        written: Collection[str] = (),
    ) -> set[str]:
        """Make the answer that of the rows as they are now.

        Args:
            connection: in a transaction that holds the table.
            row_keys: of the rows that may have changed; one that is not there is deleted.
            now: when the pairs were found.
            again: those of them whose pairs are to be searched even if they are as they are stored.
            written: those of them that should be there, since somebody has written them last.

        Returns:
            Row keys of rows that were met on the way and are not stored as they are now. Their pairs with
            the rows of this batch were left out: they must come again, among `again`.

        Raises:
            RowKeyError: a row is there that is not found by its key, or two have the same key.
        """
        batch = _Batch(self, connection, now, again, written)
        batch.run(sorted(set(row_keys)))
        return batch.texts.stale


class _Batch:
    """One batch of changes, on its way through."""

    def __init__(
        self,
        increment: "Increment",
        connection: Connection,
        now: datetime,
        again: Collection[str],
        written: Collection[str],
    ) -> None:
        self._increment, self._connection, self._now = increment, connection, now
        self._again, self._written = again, frozenset(written)
        self._store, self._index = increment.store, increment.index
        self._watched = increment.watched
        self._rows = Neighbourhood()
        self._searched: set[int] = set()
        self._no_heads: set[int] = set()
        self._paired: set[int] = set()
        self._left_groups: set[int] = set()
        self._abridged: dict[int, bool] = {}
        self._is_broken = False
        self.texts = CandidateTexts(increment.watched, increment.source, increment.fingerprinter)

    def run(self, row_keys: Sequence[str]) -> None:
        """Fingerprints, then copies, then pairs, then groups."""
        leaving, coming = self._read(row_keys)
        if not leaving and not coming:
            return
        self._load_classes(leaving, coming)
        self._note_abridged_groups(leaving)
        self._link_copies(self._write_rows(leaving, coming))
        self._search()
        self._load_groups()
        groups = self._match_anew() if self._is_broken else self._regroup()
        self._write_groups(groups)

    # Fingerprints

    def _read(self, row_keys: Sequence[str]) -> tuple[list[AnswerRow], list[RowFingerprint]]:
        """(stored rows that are gone or no longer as stored, rows as they are now that are not stored so)."""
        increment, connection = self._increment, self._connection
        stored = {row.row_key: row for row in neighbours.rows_of_keys(connection, self._store, row_keys)}
        page = self._page = list(increment.source.read_rows(connection, row_keys))
        increment.source.require_gone(connection, self._written.difference(row.row_key for row in page))
        known = [stored[row.row_key].digest if row.row_key in stored else None for row in page]
        done = increment.fingerprinter.fingerprint(
            [row.values for row in page], [row.within for row in page], known
        )
        for i in np.flatnonzero(done.is_known).tolist():
            before = stored[page[i].row_key].fingerprint
            done.fingerprints[i], done.has_fingerprint[i] = before or 0, before is not None
        self._done = done
        coming = []
        for row in row_fingerprints(page, done):
            old = stored.get(row.row_key)
            if old is None or old[2:5] != row[1:4] or row.row_key in self._again:
                coming.append(row)
            else:
                del stored[row.row_key]
        return list(stored.values()), coming

    def _write_rows(self, leaving: Sequence[AnswerRow], coming: Sequence[RowFingerprint]) -> set[int]:
        """Write what the rows have become; gives the ids of those that are there now."""
        store, connection = self._store, self._connection
        before = {row.row_key: row for row in leaving}
        new = [row for row in coming if row.row_key not in before]
        changed = [(before.pop(row.row_key), row) for row in coming if row.row_key in before]
        gone = [row.id for row in before.values()]
        self._no_heads |= {row.id for row in leaving}
        if self._index is not None:
            self._index.remove([row.id for row in leaving])
        if self._watched.rule.bands:
            drop_bands(connection, store, [row.id for row in leaving])
        store.delete_rows(connection, gone)
        for row_id in gone:
            self._rows.forget(row_id)
        store.update_rows(connection, [(old.id, row) for old, row in changed])
        store.insert_rows(connection, new)
        arrived = [old.updated(row) for old, row in changed]
        arrived += neighbours.rows_of_keys(connection, store, [row.row_key for row in new])
        self._rows.load_anew(arrived)
        number_of = {row.row_key: row.id for row in arrived}
        self.texts.add([number_of.get(row.row_key) for row in self._page], self._page, self._done)
        return {row.id for row in arrived}

    # Copies

    def _load_classes(self, leaving: Sequence[AnswerRow], coming: Sequence[RowFingerprint]) -> None:
        """The heads of all classes concerned; where a class gets another head, all of its rows: a head in no
        group is the only one."""
        new: dict[bytes, list[RowFingerprint]] = defaultdict(list)
        for row in coming:
            new[row.digest].append(row)
        digests = {*new, *(row.digest for row in leaving if row.group_id is not None)} - {NOTHING_TO_SAY}
        heads = neighbours.heads_of(self._connection, self._store, list(digests))
        self._rows.load([*heads, *leaving])
        left = {row.id for row in leaving}
        split = [
            head.digest
            for head in heads
            if head.group_id is not None
            and (head.id in left or self._is_overtaken(head, new.get(head.digest, ())))
        ]
        self._rows.load(neighbours.classes_of(self._connection, self._store, split))

    def _is_overtaken(self, head: AnswerRow, rows: Sequence[RowFingerprint]) -> bool:
        """Whether one of these rows was received before a head."""
        return bool(rows) and min(map(self._received, rows)) < self._received(head)

    def _note_abridged_groups(self, leaving: Sequence[AnswerRow]) -> None:
        """An abridged group holds no more pairs than connect it: without one of its rows it must be matched
        anew."""
        self._left_groups = {row.group_id for row in self._rows if row.group_id is not None}
        firsts = neighbours.rows_of_ids(self._connection, self._store, sorted(self._left_groups))
        self._abridged = {row.id: bool(row.is_loose) for row in firsts if row.is_abridged}
        self._is_broken = any(row.copy_of is None and row.group_id in self._abridged for row in leaving)

    def _link_copies(self, arrived: Collection[int]) -> None:
        """Every loaded class gets its first-received row as its head."""
        classes: dict[bytes, list[AnswerRow]] = defaultdict(list)
        for row in self._rows:
            if row.digest != NOTHING_TO_SAY:
                classes[row.digest].append(row)
            else:
                self._make_head(row, arrived)
        demoted = []
        for members in classes.values():
            head, *copies = sorted(members, key=self._received) if len(members) > 1 else members
            self._make_head(head, arrived)
            for row in copies:
                if row.copy_of is None and row.id not in arrived:
                    demoted.append(row.id)
                    self._is_broken |= row.group_id in self._abridged
                self._rows.link(row.id, head.id)
        self._no_heads.update(demoted)
        if self._index is not None:
            self._index.remove(demoted)
            new = [self._rows[i] for i in self._searched]
            self._index.put({row.id: row.fingerprint for row in new if row.fingerprint is not None})
        if self._watched.rule.bands:
            drop_bands(self._connection, self._store, demoted)
        neighbours.write_links(self._connection, self._store, self._rows.new_links(), self._now)

    def _make_head(self, row: AnswerRow, arrived: Collection[int]) -> None:
        if row.copy_of is None and row.id not in arrived:
            return
        self._rows.link(row.id, None)
        self._no_heads.discard(row.id)
        self._searched.add(row.id)

    # Pairs

    def _search(self) -> None:
        """Search and confirm the pairs of every head that is new or has changed."""
        asked = [self._rows[i] for i in sorted(self._searched) if self._rows[i].fingerprint is not None]
        places = self._put_bands(asked) if self._watched.rule.bands else {}
        search = PairSearch(self._connection, self._store, self._watched, self._index, self.texts)
        pairs = self._without_rejected(search.find(asked, places, self._rows))
        old = read_pairs_of(
            self._connection, self._store, self._rows.grouped(self._searched | self._no_heads)
        )
        replace_pairs(self._connection, self._store, old, pairs, self._now)
        self._paired = set(np.union1d(pairs.id_a, pairs.id_b).tolist())

    def _without_rejected(self, pairs: StoredPairs) -> StoredPairs:
        """The pairs that people have not rejected, the first-received row of each first."""
        rows = {self._rows[i] for i in np.union1d(pairs.id_a, pairs.id_b).tolist()}
        pairs = oriented(pairs, lambda row_id: self._received(self._rows[row_id]))
        rejected = {frozenset(pair) for pair in self._rejected(rows)}
        if not rejected:
            return pairs
        ids = zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True)
        return pairs.only(np.array([frozenset(pair) not in rejected for pair in ids], np.bool_))

    def _put_bands(self, asked: Sequence[AnswerRow]) -> dict[int, int]:
        """Write the sketches of rows; gives where they stand among the texts."""
        self.texts.read(self._connection, asked)
        places = {row.id: self.texts.place(row.id) for row in asked}
        found = {row_id: place for row_id, place in places.items() if place is not None}
        sketches = self.texts.sketches()
        put_bands(self._connection, self._store, {i: sketches.bytes_of(place) for i, place in found.items()})
        return found

    def _rejected(self, rows: Collection[AnswerRow]) -> list[tuple[int, int]]:
        """Two of these heads at a time that people have said to be no duplicates."""
        id_of = {row.digest: row.id for row in rows}
        return [(id_of[a], id_of[b]) for a, b in self._rejected_texts(rows)]

    def _rejected_texts(self, rows: Collection[AnswerRow]) -> set[DigestPair]:
        digests = {row.digest for row in rows}
        return rejected_among(self._connection, self._store.tables, self._store.table_id, digests)

    # Groups

    def _load_groups(self) -> None:
        """Every other head of the groups that the rows of this batch are or were in."""
        groups = self._left_groups | {row.group_id for row in self._rows if row.group_id is not None}
        heads = neighbours.heads_in_groups(self._connection, self._store, sorted(groups))
        self._rows.load(heads)
        self._abridged |= {row.id: bool(row.is_loose) for row in heads if row.is_abridged}

    def _heads(self) -> list[AnswerRow]:
        return [row for row in self._rows if row.copy_of is None]

    def _regroup(self) -> list[Group]:
        grouped = self._rows.grouped(row.id for row in self._heads())
        pairs = read_pairs_of(self._connection, self._store, sorted(self._paired.union(grouped)))
        ids = list(zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True))
        has_copies = neighbours.with_copies(self._connection, self._store, grouped)
        has_copies |= {row.copy_of for row in self._rows if row.copy_of is not None}
        # All other rows are alone, as most are that have changed.
        is_with_others = self._paired.union(grouped, has_copies)
        heads = [row for row in self._heads() if row.id in is_with_others]
        groups = regroup(
            [Head(row.id, self._received(row), row.group_id, row.id in has_copies) for row in heads],
            ids,
            self._searched,
            self._abridged,
            self._watched.abridge_above,
            self._rejected(heads),
        )
        surplus = {pair for group in groups for pair in group.surplus}
        if surplus:
            is_kept = np.array([pair not in surplus for pair in ids], np.bool_)
            replace_pairs(self._connection, self._store, pairs, pairs.only(is_kept), self._now)
        return groups

    def _match_anew(self) -> list[Group]:
        """Match all loaded heads as a full scan would, from their texts."""
        heads = sorted(self._heads(), key=self._received)
        ids = [row.id for row in heads]
        self.texts.read(self._connection, heads)
        groups, pairs = match_rows(self._watched, heads, self.texts, self._rejected_texts(heads))
        old = read_pairs_of(self._connection, self._store, ids)
        replace_pairs(self._connection, self._store, old, pairs, self._now)
        has_copies = neighbours.with_copies(self._connection, self._store, ids)
        grouped = {member for group in groups for member in group.members}
        alone = [Group(i, [i], False, False, []) for i in ids if i in has_copies and i not in grouped]
        return [*groups, *alone]

    def _write_groups(self, groups: Sequence[Group]) -> None:
        group_of = {member: group.representative for group in groups for member in group.members}
        heads = self._heads()
        moved = [row.id for row in heads if row.group_id != group_of.get(row.id)]
        for row in heads:
            self._rows.put_in_group(row.id, group_of.get(row.id))
        for group in groups:
            first = group.representative
            self._rows.put_in_group(first, first, group.is_loose, group.is_abridged)
        self._rows.load(neighbours.copies_of(self._connection, self._store, self._rows.grouped(moved)))
        for row in list(self._rows):
            if row.copy_of is not None:
                self._rows.put_in_group(row.id, group_of.get(row.copy_of))
        neighbours.write_groups(self._connection, self._store, self._rows.new_groups())
        self._write_sizes([group.representative for group in groups])

    def _write_sizes(self, representatives: Sequence[int]) -> None:
        sizes = neighbours.group_sizes(self._connection, self._store, representatives)
        neighbours.write_sizes(
            self._connection,
            self._store,
            [(row.id, sizes.get(row.id)) for row in self._rows if row.group_size != sizes.get(row.id)],
        )

    def _received(self, row: AnswerRow | RowFingerprint) -> Receipt:
        return receipt(row.order_value, row.row_key, self._increment.families)
