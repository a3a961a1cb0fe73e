"""Apply the changes of some rows: fingerprints, then exact duplicates, then pairs, then groups.

It reads and writes only the answer of the changed rows, and of the rows that share a class, a pair or a group
with them. All steps run in the caller's transaction, which must hold the lock of the table: if two workers or
scans ran at the same time, neither would see the other's rows.
"""

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.feature_cache import FeatureCache
from db_dedup.engines.embedded.increment import exact_duplicates, groups, pairs, rows
from db_dedup.engines.embedded.increment.prepared import Prepared, prepare
from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.engines.embedded.neighbourhood import Neighbourhood
from db_dedup.engines.embedded.pair_search import PairSearch
from db_dedup.engines.embedded.readiness import make_ready
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.usable_cores import usable_cores
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader
from db_dedup.store.single_entries import has_more_entries
from db_dedup.store.single_memory import MOST_ENTRIES
from db_dedup.store.sketches import count_single_entries, read_single_sketches
from db_dedup.store.source import Source

_FEW_ENTRIES: Final = 20_000
"""Up to so many single entries, their rows alone are read instead of the whole table. The limit also bounds
the memory: an entry may belong to a row with hundreds of hashes, and all of these are read."""


class EmbeddedIncrement:
    """Applies changes of one table under one recipe. See `engines.base.Increment` for the methods.

    Attributes:
        index: all fingerprints in memory, kept up to date; None if each search queries the database. With
            it, the single entries of the index of sketches are in memory, too, unless they are too many.
        cache: the features of rows that were read, kept from batch to batch.
    """

    def __init__(
        self,
        watched: WatchedTable,
        store: FingerprintStore,
        source: Source,
        fingerprinter: Fingerprinter,
        cache_bytes: int,
    ) -> None:
        self.watched, self.store, self.source = watched, store, source
        self.fingerprinter = fingerprinter
        self.index: FingerprintIndex | None = None
        self.cache = FeatureCache(watched, cache_bytes, usable_cores())
        self._prepared: Prepared | None = None
        self._families = [column.family for column in source.key_columns]

    def make_ready(self) -> None:
        """Compile what a first batch needs."""
        make_ready(self.watched, self.fingerprinter)

    @property
    def has_index(self) -> bool:
        """Whether all fingerprints are in memory."""
        return self.index is not None

    def load_index(self, connection: Connection) -> None:
        """Read all fingerprints into memory, through a connection for short reads."""
        self.index = FingerprintIndex(*self.store.read_canonical_rows(self._reader(connection)))

    def _load_single_entries(self, connection: Connection) -> None:
        """Read the single entries of the index of sketches into memory, unless they are too many."""
        are_few = not has_more_entries(connection, self.store, _FEW_ENTRIES)
        if are_few or count_single_entries(connection, self.store) <= MOST_ENTRIES:
            entries = read_single_sketches(self._reader(connection), self.store, by_entries=are_few)
            self.cache.index.single.load(entries)
        else:
            self.cache.index.single.refuse()

    def _reader(self, connection: Connection) -> Reader:
        return Reader.for_dialect(self.store.dialect, lambda: nullcontext(connection))

    def drop_index(self) -> None:
        """Delete from memory what depends on the stored answer: the indexes, and the pairs found ahead."""
        self.index = None
        self.cache.index.single.clear()
        if self._prepared is not None:
            self._prepared = replace(self._prepared, pairs={}, stale=frozenset(), since={}, outdated=set())

    def prepare(self, connection: Connection, row_keys: Collection[str], again: Collection[str] = ()) -> None:
        """Read, fingerprint and match rows that may have changed, before the table is locked."""
        self.cache.trim()
        if self.has_index and self.watched.rule.sketches and self.cache.index.single.is_wanted:
            self._load_single_entries(connection)
        texts = CandidateTexts(self.watched, self.source, self.fingerprinter, self.cache, ends_reads=True)
        search = PairSearch(connection, self.store, self.watched, self.index, texts)
        self._prepared = prepare(
            connection,
            self.store,
            self.source,
            self.fingerprinter,
            texts,
            search,
            sorted(set(row_keys)),
            frozenset(again),
        )

    def apply(
        self,
        connection: Connection,
        row_keys: Collection[str],
        now: datetime,
        again: Collection[str] = (),
        written: Collection[str] = (),
    ) -> set[str]:
        """Update the stored answer for rows that may have changed."""
        self.cache.trim()
        scope = self._scope(connection, now)
        changes = rows.read_changes(scope, sorted(set(row_keys)), frozenset(again), frozenset(written))
        if not changes.is_empty:
            _apply(scope, changes)
        left_out: frozenset[str] = frozenset()
        if self._prepared is not None:
            left_out = self._prepared.stale
            self._prepared = replace(self._prepared, stale=frozenset())
        return scope.texts.stale | left_out

    def _scope(self, connection: Connection, now: datetime) -> BatchScope:
        return BatchScope(
            connection=connection,
            now=now,
            watched=self.watched,
            store=self.store,
            source=self.source,
            families=self._families,
            fingerprinter=self.fingerprinter,
            index=self.index,
            rows=Neighbourhood(),
            texts=CandidateTexts(self.watched, self.source, self.fingerprinter, self.cache),
            prepared=self._prepared,
        )


def _apply(scope: BatchScope, changes: rows.RowChanges) -> None:
    exact_duplicates.load_classes(scope, changes)
    former = groups.find_former_groups(scope)
    written = rows.write_rows(scope, changes)
    canonical = exact_duplicates.link_classes(scope, written.ids)
    places = rows.write_texts(scope, written, canonical.searched)
    found = pairs.search_pairs(scope, changes.outdated, canonical, places)
    formed = groups.form_groups(scope, former, changes.outdated, canonical, found)
    groups.write_groups(scope, formed)
