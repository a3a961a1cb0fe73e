"""Read the stored pairs and groups of one table, and explain its pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from db_dedup.app.database import Database
from db_dedup.app.engines import find_engine
from db_dedup.app.table_access import TableAccess
from db_dedup.records import Explanation, FrameExample, GroupSummary, RowKey
from db_dedup.records.group_history import GroupChange, GroupHistory
from db_dedup.records.kinds import PairFilter
from db_dedup.records.pair_columns import PairColumns, limited
from db_dedup.store import answers, group_history
from db_dedup.store.watched_tables import StoredTable

if TYPE_CHECKING:
    from db_dedup.jobs.explain.explanation import Explainer


class TableAnswers:
    """Reads pairs and groups, and explains pairs."""

    def __init__(self, database: Database, access: TableAccess, name: str) -> None:
        self._database, self._access, self._name = database, access, name
        self._prepared: tuple[StoredTable, Explainer] | None = None

    def explain(self, key_a: RowKey, key_b: RowKey) -> Explanation:
        """Explain why two rows are a duplicate pair, or why not."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as ours:
            a, b = self._access.row_keys(ours, [key_a, key_b])
            with self._database.reading(ours) as theirs:
                return self._explainer(ours).explain(ours, a, b, theirs)

    def frame_examples(self) -> tuple[FrameExample, ...]:
        """Return rows as they are now in which the stored frames are seen."""
        from db_dedup.jobs.scan.frame_examples import frame_examples  # noqa: PLC0415 - see `Deduplicator.scan`
        from db_dedup.jobs.scan.frames import take_sample  # noqa: PLC0415 - the same

        with self._database.translate_driver_errors():
            with self._database.engine.connect() as connection:
                stored = self._access.require_stored(connection).require_current()
                context = self._access.stored_context(connection, stored)
            if not context.frames.has_frames:
                return ()
            return frame_examples(context, take_sample(context), context.frames)

    def pairs(self, expand: bool, limit: int | None, wanted: PairFilter) -> Iterator[PairColumns]:
        """Yield the wanted pairs in parts; expanded, also those that exact duplicates and abridged groups
        imply."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
        return self._read_pairs(stored, expand, limit, wanted)

    def _read_pairs(
        self, stored: StoredTable, expand: bool, limit: int | None, wanted: PairFilter
    ) -> Iterator[PairColumns]:
        engine = self._database.engine
        if not expand:
            # Two queries that must see the same answer.
            with (
                self._database.translate_driver_errors(),
                self._database.dialect.read_snapshot(engine) as connection,
            ):
                yield from answers.read_pairs(connection, self._database.tables, self._name, limit, wanted)
            return
        with self._database.translate_driver_errors(), engine.connect() as connection:
            watched, source = self._access.source(connection, stored.require_current().watched)
            recipe = self._access.recipe(connection, stored)
            with self._database.reading(connection) as rows:
                store = self._access.store(stored)
                found = find_engine().expanded_pairs(watched, recipe, store, source, connection, rows)
                yield from limited((part.wanted(wanted) for part in found), limit)

    def groups(self, limit: int | None) -> list[GroupSummary]:
        """Return the duplicate groups, the largest first."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            return list(answers.read_groups(connection, self._database.tables, self._name, limit))

    def members(self, group_id: RowKey) -> list[str]:
        """Return the row keys of a group, the representative first."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            (group,) = self._access.row_keys(connection, [group_id])
            return answers.read_members(connection, self._database.tables, self._name, group)

    def members_of(self, group_ids: Iterable[RowKey], each: int | None) -> dict[str, list[str]]:
        """Return group id -> row keys for several groups, of each group at most `each`."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            groups = self._access.row_keys(connection, group_ids)
            return answers.read_members_of(connection, self._database.tables, self._name, groups, each)

    def group_history(self, group_id: RowKey) -> GroupHistory:
        """Return what has become of the group of an id."""
        database = self._database
        with database.translate_driver_errors():
            with database.engine.connect() as connection:
                (key,) = self._access.row_keys(connection, [group_id])
            # Several queries that must see the same answer.
            with database.dialect.read_snapshot(database.engine) as connection:
                stored = self._access.require_stored(connection)
                return group_history.read_history(connection, self._access.store(stored), key)

    def group_changes(self, limit: int) -> list[GroupChange]:
        """Return the latest changes of ids, the latest first."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
            return group_history.read_latest(connection, self._database.tables, stored.id, limit)

    def _explainer(self, connection: Connection) -> Explainer:
        """Return the explainer; it is kept until a scan switches to another recipe."""
        from db_dedup.jobs.explain.explanation import Explainer  # noqa: PLC0415 - see `Deduplicator.scan`

        stored = self._access.require_scanned(connection).require_current()
        if self._prepared is None or not stored.is_alike(self._prepared[0]):
            watched, source = self._access.source(connection, stored.watched)
            recipe = self._access.recipe(connection, stored)
            self._prepared = stored, Explainer(watched, recipe, self._access.store(stored), source)
        return self._prepared[1]
