"""Every pair of rows that the stored answer implies.

The pairs of exact duplicates are listed one by one, and abridged groups are searched again. Memory is used
for the rows that are in groups, and for some thousand pairs at a time.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.classes import Classes, classes_of, forms_of_pairs
from db_dedup.engines.embedded.group_match import table_of
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import all_pairs
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.records.fingerprints import DigestPair
from db_dedup.records.kinds import EXACT_DUPLICATES
from db_dedup.records.pair_columns import PairColumns
from db_dedup.records.recipe import Recipe
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.labels import rejected_among
from db_dedup.store.pairs import StoredPairs, pairs_in_parts
from db_dedup.store.source import Source
from db_dedup.store.streams import parts_of

_FETCH: Final = 10_000
_PAIRS_A_PART: Final = 10_000


class _Member(NamedTuple):
    """A canonical row."""

    id: int
    row_key: str
    fingerprint: int
    digest: bytes


class Expansion:
    """Lists the pairs of one table."""

    def __init__(
        self, watched: WatchedTable, recipe: Recipe, store: FingerprintStore, source: Source
    ) -> None:
        self._watched, self._recipe = watched, recipe
        self._store = store
        self._source = source
        self._families = [column.family for column in source.key_columns]

    def pairs(self, connection: Connection, source_connection: Connection) -> Iterator[PairColumns]:
        """Yield every pair of rows whose classes of exact duplicates are the same or paired, in parts.

        Each pair comes once, the earlier row first.

        Args:
            connection: to our tables.
            source_connection: to the user's rows.
        """
        classes, abridged = self._read_classes(connection)
        yield from _exact_duplicates(classes)
        for pairs in self._class_pairs(connection, source_connection, abridged):
            yield from classes.expanded(pairs, _PAIRS_A_PART)

    def _read_classes(self, connection: Connection) -> tuple[Classes, dict[int, list[_Member]]]:
        """Return (the classes of exact duplicates, id of an abridged group -> its members)."""
        row, first = self._store.tables.fingerprint, self._store.tables.fingerprint.alias("first")
        of_row = (row.c.id, row.c.copy_of, row.c.row_key, row.c.order_value, row.c.form)
        query = (
            select(*of_row, row.c.group_id, row.c.fingerprint, row.c.digest, first.c.is_abridged)
            .join(first, first.c.id == row.c.group_id)
            .where(self._store.mine)
        )
        class_ids: list[int] = []
        keys: list[str] = []
        order_values: list[str | None] = []
        forms: list[int | None] = []
        abridged: dict[int, list[_Member]] = {}
        for part in parts_of(connection, query, _FETCH):
            columns = zip(*part, strict=True)
            ids, copy_of, part_keys, part_order_values, part_forms, groups = islice(columns, 6)
            fingerprints, digests, is_abridged = columns
            class_ids += [own if first is None else first for own, first in zip(ids, copy_of, strict=True)]
            keys += part_keys
            order_values += part_order_values
            forms += part_forms
            for place, flag in enumerate(is_abridged):
                if flag and copy_of[place] is None:
                    member = _Member(ids[place], part_keys[place], fingerprints[place], bytes(digests[place]))
                    abridged.setdefault(groups[place], []).append(member)
        return classes_of(class_ids, keys, order_values, forms, self._families), abridged

    def _class_pairs(
        self,
        connection: Connection,
        source_connection: Connection,
        abridged: Mapping[int, Sequence[_Member]],
    ) -> Iterator[StoredPairs]:
        """Yield the pairs of classes, by the ids of their canonical rows."""
        yield from pairs_in_parts(connection, self._store, _FETCH, without=list(abridged))
        for _, members in sorted(abridged.items()):
            rejected = rejected_among(
                connection, self._store.tables, self._store.table_id, [member.digest for member in members]
            )
            yield from self._search_group(source_connection, sorted(members), rejected)

    def _search_group(
        self, connection: Connection, members: Sequence[_Member], rejected: Collection[DigestPair]
    ) -> Iterator[StoredPairs]:
        """Yield all pairs of an abridged group; a row that has changed since it was stored is in none."""
        texts = CandidateTexts(
            self._watched, self._source, Fingerprinter(self._recipe), passes_over_broken=False
        )
        texts.read(connection, members)
        rule = Rule(self._watched.setting)
        ids = np.array([member.id for member in members], np.int64)
        for found in all_pairs(table_of(members, texts, rejected), rule):
            yield StoredPairs(
                ids[found.left], ids[found.right], found.distances, found.similarities, found.kinds
            )


def _exact_duplicates(classes: Classes) -> Iterator[PairColumns]:
    """Yield the pairs of rows of the same class."""
    pairs = chain.from_iterable(combinations(rows, 2) for rows in classes.rows_in_order())
    while part := list(islice(pairs, _PAIRS_A_PART)):
        kind, count = EXACT_DUPLICATES, len(part)
        forms_a, forms_b = (np.array([rows[side][1] for rows in part], np.int64) for side in (0, 1))
        yield PairColumns(
            [a for (a, _), _ in part],
            [b for _, (b, _) in part],
            [0] * count,
            [1.0] * count,
            [kind.kind] * count,
            [None] * count,
            [kind.other_place] * count,
            forms_of_pairs(forms_a, forms_b),
        )
