"""Why two rows are a duplicate pair, or why not: the stored rule, applied to their texts as they are now."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import DataError

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.applied_rule import AppliedRule, RuleApplier
from db_dedup.engines.embedded.explained_columns import ColumnExplainer
from db_dedup.errors import ConfigError, RowNotFoundError
from db_dedup.records import ExplainedRow, Explanation, SourceRow, StoredLink
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.given_keys import may_be_key
from db_dedup.store.source import Source
from db_dedup.store.standing import StandingRow, find_pair, find_standing
from db_dedup.store.verdicts import rejected_among


class Explainer:
    """Explains pairs of rows of one table."""

    def __init__(self, watched: WatchedTable, store: FingerprintStore, source: Source) -> None:
        """Prepare the segmenter, which takes a moment."""
        self._name = watched.name
        self._store = store
        self._source = source
        self._rule = RuleApplier(watched)
        self._columns = ColumnExplainer(watched)

    def explain(
        self, connection: Connection, key_a: str, key_b: str, source_connection: Connection | None = None
    ) -> Explanation:
        """Compare two rows.

        Args:
            connection: leads to our tables.
            key_a: of the one row.
            key_b: of the other.
            source_connection: leads to the user's rows; left out, the first one does.

        Raises:
            RowNotFoundError: the table has no such row.
            ConfigError: both keys are the same.
        """
        if key_a == key_b:
            raise ConfigError(f"both keys are {key_a!r}: name two rows")
        standing = find_standing(connection, self._store, [key_a, key_b])
        a, b = standing.get(key_a), standing.get(key_b)
        source = source_connection or connection
        row_a, row_b = self._read(source, key_a, a), self._read(source, key_b, b)
        applied = self._rule.apply(row_a, row_b, lambda *digests: self._is_rejected(connection, *digests))
        link = self._find_link(connection, a, b)
        common_group = a if a and b and a.group_key == b.group_key is not None else None
        is_abridged = common_group is not None and common_group.is_abridged
        return Explanation(
            table=self._name,
            verdict=applied.verdict,
            row_a=_explained_row(row_a, a, applied, 0),
            row_b=_explained_row(row_b, b, applied, 1),
            columns=tuple(self._columns.explain(row_a, row_b, applied)),
            distance=applied.distance,
            similarities=applied.similarities,
            proposers=applied.proposers,
            tests=applied.tests,
            stored=link,
            agrees=applied.agrees_with(link) or (link is None and is_abridged),
            in_same_group=common_group is not None,
            is_abridged=is_abridged,
        )

    def _is_rejected(self, connection: Connection, *digests: bytes) -> bool:
        return bool(rejected_among(connection, self._store.tables, self._store.table_id, digests))

    def _read(self, connection: Connection, key: str, standing: StandingRow | None) -> SourceRow:
        if standing or may_be_key(key, len(self._source.key_columns)):
            try:
                found = list(self._source.read_rows(connection, [key]))
            except DataError:  # the database cannot make a value of the column's type of it
                found = []
            if found:
                return found[0]
        fault = "is gone since it was last read" if standing else "is not there"
        raise RowNotFoundError(f"row {key[:40]!r} of {self._name!r} {fault}")

    def _find_link(
        self, connection: Connection, a: StandingRow | None, b: StandingRow | None
    ) -> StoredLink | None:
        if a is None or b is None:
            return None
        if a.class_id == b.class_id:
            return StoredLink("copies", 0, 1.0, max(filter(None, (a.found_at, b.found_at)), default=None))
        pair = find_pair(connection, self._store, a.class_id, b.class_id)
        return None if pair is None else StoredLink("pair", *pair)


def _explained_row(row: SourceRow, stored: StandingRow | None, applied: AppliedRule, i: int) -> ExplainedRow:
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
