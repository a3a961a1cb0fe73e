"""Explain why two rows are a duplicate pair, or why not, by the stored rule and their present texts."""

import json
from collections.abc import Sequence
from contextlib import nullcontext

from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.errors import ConfigError, RowNotFoundError
from db_dedup.jobs.explain.applied_rule import AppliedRule, RuleApplier
from db_dedup.jobs.explain.columns import ColumnExplainer
from db_dedup.records import ExplainedRow, Explanation, SourceRow, StoredLink
from db_dedup.records.recipe import Recipe
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.given_keys import read_given
from db_dedup.store.labels import rejected_among
from db_dedup.store.row_answers import RowAnswer, find_pair, find_row_answers
from db_dedup.store.source import Source


class Explainer:
    """Explains pairs of rows of one table."""

    def __init__(
        self, watched: WatchedTable, recipe: Recipe, store: FingerprintStore, source: Source
    ) -> None:
        """Prepare the segmenter, which takes a moment."""
        self._name = watched.name
        self._store = store
        self._source = source
        self._rule = RuleApplier(watched, recipe)
        self._columns = ColumnExplainer(watched)

    def explain(
        self, connection: Connection, key_a: str, key_b: str, source_connection: Connection | None = None
    ) -> Explanation:
        """Compare two rows.

        Args:
            connection: to our tables.
            key_a: the key of the one row.
            key_b: the key of the other.
            source_connection: to the user's rows; `connection` if it is left out.

        Raises:
            RowNotFoundError: the table has no such row.
            ConfigError: both keys are the same.
        """
        if key_a == key_b:
            raise ConfigError("both keys are {key!r}: name two rows", key=key_a)
        stored = find_row_answers(connection, self._store, [key_a, key_b])
        a, b = stored.get(key_a), stored.get(key_b)
        source = source_connection or connection
        row_a, row_b = self._read(source, key_a, a), self._read(source, key_b, b)
        applied = self._rule.apply(row_a, row_b, lambda *digests: self._is_rejected(connection, *digests))
        link = self._find_link(connection, a, b)
        common_group = a if a and b and a.group_key == b.group_key is not None else None
        is_abridged = common_group is not None and common_group.is_abridged
        return Explanation(
            table=self._name,
            decision=applied.decision,
            row_a=_explained_row(row_a, a, applied, 0),
            row_b=_explained_row(row_b, b, applied, 1),
            columns=tuple(self._columns.explain(row_a, row_b, applied)),
            distance=applied.distance,
            similarities=applied.similarities,
            generators=applied.generators,
            tests=applied.tests,
            stored=link,
            agrees=applied.agrees_with(link, row_a.row_key, row_b.row_key) or (link is None and is_abridged),
            in_same_group=common_group is not None,
            is_abridged=is_abridged,
            kind=applied.kind.kind,
            contained_key=applied.kind.part_of(row_a.row_key, row_b.row_key),
            other_place=applied.kind.other_place,
        )

    def _is_rejected(self, connection: Connection, *digests: bytes) -> bool:
        return bool(rejected_among(connection, self._store.tables, self._store.table_id, digests))

    def _read(self, connection: Connection, key: str, stored: RowAnswer | None) -> SourceRow:
        for row in read_given(lambda: nullcontext(connection), self._source, [key]):
            return row
        template = (
            "row {key!r} of {table!r} is gone since it was last read"
            if stored
            else "row {key!r} of {table!r} is not there"
        )
        raise RowNotFoundError(template, key=key[:40], table=self._name)

    def _find_link(
        self, connection: Connection, a: RowAnswer | None, b: RowAnswer | None
    ) -> StoredLink | None:
        if a is None or b is None:
            return None
        if a.class_id == b.class_id:
            found_at = max(filter(None, (a.found_at, b.found_at)), default=None)
            return StoredLink("copies", 0, 1.0, found_at, "copy", None, other_place=False)
        return find_pair(connection, self._store, a, b)


def _explained_row(row: SourceRow, stored: RowAnswer | None, applied: AppliedRule, i: int) -> ExplainedRow:
    words = applied.words
    is_same = stored is not None and stored.digest == words.digests[i]
    within: Sequence[str] = json.loads(row.within) if row.within else ()
    return ExplainedRow(
        row_key=row.row_key,
        state="new" if stored is None else "unchanged" if is_same else "changed",
        fingerprint=f"{int(words.fingerprints[i]):016x}" if words.has_fingerprint[i] else None,
        features=int(words.features.counts[i]),
        within=tuple(within),
        copy_of=stored.copy_of if stored else None,
        group_id=stored.group_key if stored else None,
    )
