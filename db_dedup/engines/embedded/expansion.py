"""Every pair of rows that the stored answer implies.

The pairs of exact duplicates are listed one by one, and abridged groups are searched again.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.group_match import table_of
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import all_pairs
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.rows.order import Receipt, receipt
from db_dedup.records import DuplicatePair
from db_dedup.records.fingerprints import DigestPair
from db_dedup.records.kinds import PairKind
from db_dedup.records.recipe import Recipe
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.labels import rejected_among
from db_dedup.store.pairs import StoredPairs, as_arrays, select_pairs
from db_dedup.store.source import Source

_FETCH = 10_000

_Row = tuple[Receipt, str]
"""When a row was received, as a sort key, and its row key."""


class _Member(NamedTuple):
    """A canonical row."""

    id: int
    row_key: str
    fingerprint: int
    digest: bytes


class _ClassPair(NamedTuple):
    """A pair of two classes of exact duplicates, by the ids of their canonical rows."""

    id_a: int
    id_b: int
    distance: int
    similarity: float | None
    kind: PairKind


class Expansion:
    """Lists the pairs of one table."""

    def __init__(
        self, watched: WatchedTable, recipe: Recipe, store: FingerprintStore, source: Source
    ) -> None:
        self._watched, self._recipe = watched, recipe
        self._store = store
        self._source = source
        self._families = [column.family for column in source.key_columns]

    def pairs(
        self, connection: Connection, source_connection: Connection | None = None
    ) -> Iterator[DuplicatePair]:
        """Yield every pair of rows whose classes of exact duplicates are the same or paired.

        Each pair comes once, the earlier row first.

        Args:
            connection: to our tables.
            source_connection: to the user's rows; `connection` if it is left out.
        """
        classes, abridged = self._read_classes(connection)
        for members in classes.values():
            for (_, a), (_, b) in combinations(sorted(members), 2):
                yield DuplicatePair(a, b, 0, 1.0, "copy", None, False)
        for pair in self._class_pairs(connection, source_connection or connection, abridged):
            for one in classes[pair.id_a]:
                for other in classes[pair.id_b]:
                    (_, a), (_, b) = sorted((one, other))
                    part = pair.kind.part_of(one[1], other[1])
                    yield DuplicatePair(
                        a, b, pair.distance, pair.similarity, pair.kind.kind, part, pair.kind.other_place
                    )

    def _read_classes(self, connection: Connection) -> tuple[dict[int, list[_Row]], dict[int, list[_Member]]]:
        """Return (id of a class of exact duplicates -> its rows, id of an abridged group -> its members)."""
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
    ) -> Iterator[_ClassPair]:
        row = self._store.tables.fingerprint
        query = (
            select_pairs(self._store)
            .where(row.c.group_id.not_in(list(abridged)))
            .execution_options(yield_per=_FETCH)
        )
        for part in connection.execute(query).partitions():
            yield from _class_pairs(as_arrays(part))
        for members in abridged.values():
            rejected = rejected_among(
                connection, self._store.tables, self._store.table_id, [member.digest for member in members]
            )
            yield from self._search_group(source_connection, members, rejected)

    def _search_group(
        self, connection: Connection, members: Sequence[_Member], rejected: Collection[DigestPair]
    ) -> Iterator[_ClassPair]:
        """Yield all pairs of an abridged group; a row that has changed since it was stored is in none."""
        texts = CandidateTexts(
            self._watched, self._source, Fingerprinter(self._recipe), passes_over_broken=False
        )
        texts.read(connection, members)
        rule = Rule(self._watched.setting)
        ids = np.array([member.id for member in members], np.int64)
        for found in all_pairs(table_of(members, texts, rejected), rule):
            yield from _class_pairs(
                StoredPairs(
                    ids[found.left], ids[found.right], found.distances, found.similarities, found.kinds
                )
            )


def _class_pairs(pairs: StoredPairs) -> Iterator[_ClassPair]:
    columns = (pairs.id_a, pairs.id_b, pairs.distances, pairs.similarities, pairs.kinds)
    for a, b, distance, score, kind in zip(*(column.tolist() for column in columns), strict=True):
        yield _ClassPair(a, b, distance, None if isnan(score) else score, PairKind.of(kind))
