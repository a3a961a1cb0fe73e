"""Every pair of rows that the answer implies: copies written out, abridged groups searched again."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import NamedTuple

from sqlalchemy import Connection, select

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.group_match import table_of
from db_dedup.engines.embedded.matching import all_pairs
from db_dedup.engines.embedded.table_scan import match_rule
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.records import DuplicatePair
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.ordering import Receipt, receipt
from db_dedup.store.source import Source
from db_dedup.store.verdicts import DigestPair, rejected_among

_FETCH = 10_000

_Row = tuple[Receipt, str]
"""When a row was received, as a sort key, and its row key."""


class _Member(NamedTuple):
    """A row that is no copy."""

    id: int
    row_key: str
    fingerprint: int
    digest: bytes


class Expansion:
    """Writes out the pairs of one table."""

    def __init__(self, watched: WatchedTable, store: FingerprintStore, source: Source) -> None:
        self._watched = watched
        self._store = store
        self._source = source
        self._families = [column.family for column in source.key_columns]

    def pairs(
        self, connection: Connection, source_connection: Connection | None = None
    ) -> Iterator[DuplicatePair]:
        """Every pair of rows whose copy classes are the same or paired, once each, the earlier row first.

        Args:
            connection: leads to our tables.
            source_connection: leads to the user's rows; left out, the first one does.
        """
        classes, abridged = self._read_classes(connection)
        for members in classes.values():
            for (_, a), (_, b) in combinations(sorted(members), 2):
                yield DuplicatePair(a, b, 0, 1.0)
        for id_a, id_b, distance, similarity in self._class_pairs(
            connection, source_connection or connection, abridged
        ):
            for one in classes[id_a]:
                for other in classes[id_b]:
                    (_, a), (_, b) = sorted((one, other))
                    yield DuplicatePair(a, b, distance, similarity)

    def _read_classes(self, connection: Connection) -> tuple[dict[int, list[_Row]], dict[int, list[_Member]]]:
        """(class id -> its rows, abridged group's id -> its members)."""
        row, first = self._store.tables.fingerprint, self._store.tables.fingerprint.alias("first")
        query = (
            select(
                *(
                    row.c.id,
                    row.c.copy_of,
                    row.c.row_key,
                    row.c.order_value,
                    row.c.fingerprint,
                    row.c.group_id,
                    row.c.digest,
                ),
                first.c.is_abridged,
            )
            .join(first, first.c.id == row.c.group_id)
            .where(self._store.mine)
            .execution_options(yield_per=_FETCH)
        )
        classes: dict[int, list[_Row]] = defaultdict(list)
        abridged: dict[int, list[_Member]] = defaultdict(list)
        for (
            row_id,
            copy_of,
            key,
            order_value,
            fingerprint,
            group_id,
            digest,
            is_abridged,
        ) in connection.execute(query):
            received = receipt(order_value, key, self._families)
            classes[row_id if copy_of is None else copy_of].append((received, key))
            if is_abridged and copy_of is None:
                abridged[group_id].append(_Member(row_id, key, fingerprint, bytes(digest)))
        return classes, abridged

    def _class_pairs(
        self,
        connection: Connection,
        source_connection: Connection,
        abridged: Mapping[int, Sequence[_Member]],
    ) -> Iterator[tuple[int, int, int, float | None]]:
        pair, row = self._store.tables.pair, self._store.tables.fingerprint
        query = (
            select(pair.c.id_a, pair.c.id_b, pair.c.distance, pair.c.similarity)
            .join(row, row.c.id == pair.c.id_a)
            .where(self._store.mine, row.c.group_id.not_in(list(abridged)))
            .execution_options(yield_per=_FETCH)
        )
        for id_a, id_b, distance, similarity in connection.execute(query):
            yield int(id_a), int(id_b), int(distance), similarity
        for members in abridged.values():
            rejected = rejected_among(
                connection, self._store.tables, self._store.table_id, [member.digest for member in members]
            )
            yield from self._search_group(source_connection, members, rejected)

    def _search_group(
        self, connection: Connection, members: Sequence[_Member], rejected: Collection[DigestPair]
    ) -> Iterator[tuple[int, int, int, float | None]]:
        """All pairs of an abridged group; a row that has changed since it was stored is in none."""
        texts = CandidateTexts(
            self._watched, self._source, Fingerprinter(self._watched), passes_over_broken=False
        )
        texts.read(connection, members)
        rule = match_rule(self._watched.rule, self._watched.abridge_above)
        for pairs in all_pairs(table_of(members, texts, rejected), rule):
            columns = (pairs.left, pairs.right, pairs.distances, pairs.similarities)
            for a, b, distance, score in zip(*(column.tolist() for column in columns), strict=True):
                yield members[a].id, members[b].id, distance, None if isnan(score) else score
