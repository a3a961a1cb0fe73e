"""The stored answer of one table, and what it says of rows that a caller names."""

from collections.abc import Iterable, Iterator
from itertools import islice

from sqlalchemy import Connection

from db_dedup.app.database import Database
from db_dedup.app.table_access import TableAccess
from db_dedup.engines.embedded.expansion import Expansion
from db_dedup.engines.embedded.explanation import Explainer
from db_dedup.records import DuplicatePair, Explanation, GroupSummary, RowKey
from db_dedup.store import answers
from db_dedup.store.watched_tables import StoredTable


class TableAnswers:
    """Reads pairs and groups, and explains pairs."""

    def __init__(self, database: Database, access: TableAccess, name: str) -> None:
        self._database, self._access, self._name = database, access, name
        self._prepared: tuple[StoredTable, Explainer] | None = None

    def explain(self, key_a: RowKey, key_b: RowKey) -> Explanation:
        """Why two rows are a duplicate pair, or why not."""
        with self._database.errors_told(), self._database.engine.connect() as ours:
            a, b = self._access.row_keys(ours, [key_a, key_b])
            with self._database.reading(ours) as theirs:
                return self._explainer(ours).explain(ours, a, b, theirs)

    def pairs(self, expand: bool, limit: int | None) -> Iterator[DuplicatePair]:
        """The duplicate pairs; expanded, all that they imply."""
        with self._database.errors_told(), self._database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
        return self._read_pairs(stored, expand, limit)

    def _read_pairs(self, stored: StoredTable, expand: bool, limit: int | None) -> Iterator[DuplicatePair]:
        with self._database.errors_told(), self._database.engine.connect() as connection:
            if not expand:
                yield from answers.read_pairs(connection, self._database.tables, self._name, limit)
                return
            watched, source = self._access.source(connection, stored.require_current().watched)
            with self._database.reading(connection) as rows:
                yield from islice(
                    Expansion(watched, self._access.store(stored), source).pairs(connection, rows), limit
                )

    def groups(self, limit: int | None) -> list[GroupSummary]:
        """The duplicate groups, the largest first."""
        with self._database.errors_told(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            return list(answers.read_groups(connection, self._database.tables, self._name, limit))

    def members(self, group_id: RowKey) -> list[str]:
        """The row keys of a group, the representative first."""
        with self._database.errors_told(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            (group,) = self._access.row_keys(connection, [group_id])
            return answers.read_members(connection, self._database.tables, self._name, group)

    def members_of(self, group_ids: Iterable[RowKey], each: int | None) -> dict[str, list[str]]:
        """As `members`, of several groups."""
        with self._database.errors_told(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            groups = self._access.row_keys(connection, group_ids)
            return answers.read_members_of(connection, self._database.tables, self._name, groups, each)

    def _explainer(self, connection: Connection) -> Explainer:
        """Made once, and again when a scan has switched to another recipe."""
        stored = self._access.require_scanned(connection).require_current()
        if self._prepared is None or not stored.is_alike(self._prepared[0]):
            watched, source = self._access.source(connection, stored.watched)
            self._prepared = stored, Explainer(watched, self._access.store(stored), source)
        return self._prepared[1]
