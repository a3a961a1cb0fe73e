"""One table in a database: its settings, given or stored, and the reader of its rows."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from db_dedup.app.database import Database
from db_dedup.app.setting_differences import setting_differences
from db_dedup.config import WatchedTable
from db_dedup.errors import NotScannedError, RecipeDiffersError, TableGoneError, UnknownNameError
from db_dedup.jobs.context import JobContext
from db_dedup.progress import Progress
from db_dedup.records import PairLabel, RowKey
from db_dedup.store import watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.inspection import check_columns, inspect_table, resolve_key
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable


class TableAccess:
    """Finds what is stored of a table, and what a job on it needs.

    Attributes:
        given: the settings that the caller gave; None where the stored ones count.
    """

    def __init__(self, database: Database, name: str, given: WatchedTable | None, progress: Progress) -> None:
        self._database, self._name, self._progress = database, name, progress
        self.given = given

    def settings(self, connection: Connection) -> WatchedTable:
        """The given settings, or else those that are stored."""
        return self.given or self.find_stored(connection).watched

    def context(self, connection: Connection, watched: WatchedTable) -> JobContext:
        """What a job by these settings works with."""
        watched, source = self.source(connection, watched)
        database = self._database
        return JobContext(
            database.engine,
            database.dialect,
            database.tables,
            watched,
            source,
            database.source_engine,
            database.source_dialect,
            self._progress,
        )

    def store(self, stored: StoredTable) -> FingerprintStore:
        """The fingerprints of the recipe that serves."""
        return FingerprintStore(self._database.dialect, self._database.tables, stored.id, stored.recipe or 0)

    def source(self, connection: Connection, watched: WatchedTable) -> tuple[WatchedTable, Source]:
        """The settings with what inspection found filled in, and the reader of the user's table."""
        with self._database.reading(connection) as rows:
            return self.inspected(connection, watched, rows)

    def inspected(
        self, connection: Connection, watched: WatchedTable, rows: Connection
    ) -> tuple[WatchedTable, Source]:
        """As `source`, where `rows` leads to the user's rows."""
        try:
            table = inspect_table(rows, watched.table_name, watched.schema_name)
        except UnknownNameError as error:
            if self._was_scanned(connection, watched):
                raise TableGoneError(watched.name, watched.table_name, error.near) from None
            raise
        check_columns(watched, table)
        key = resolve_key(table, watched.key)
        watched = watched.model_copy(update={"key": tuple(column.name for column in key)})
        return watched, Source(self._database.source_dialect, table, watched)

    def _was_scanned(self, connection: Connection, watched: WatchedTable) -> bool:
        """Whether an answer is stored for this very table of the user's."""
        if not self._database.is_installed(connection):
            return False
        stored = watched_tables.find_table(connection, self._database.tables, watched.name)
        if stored is None or stored.recipe is None:
            return False
        old = stored.watched
        return (old.schema_name, old.table_name) == (watched.schema_name, watched.table_name)

    def row_keys(self, connection: Connection, given: Iterable[RowKey]) -> list[str]:
        """The row keys that a caller means; the table is looked at only where one is not given as text.

        Raises:
            InvalidArgumentError: the table can have no such key.
        """
        keys = list(given)
        texts = [key for key in keys if isinstance(key, str)]
        if len(texts) == len(keys):
            return texts
        _, source = self.source(connection, self.settings(connection))
        return [source.row_key_of(key) for key in keys]

    def labels(self, connection: Connection, given: Sequence[PairLabel]) -> list[PairLabel]:
        """The same labels, their keys as text."""
        keys = self.row_keys(connection, [key for label in given for key in (label.key_a, label.key_b)])
        pairs = zip(keys[::2], keys[1::2], given, strict=True)
        return [PairLabel(key_a, key_b, label.is_duplicate) for key_a, key_b, label in pairs]

    def find_stored(self, connection: Connection) -> StoredTable:
        """What is stored of the table; UnknownNameError where nothing is."""
        stored = watched_tables.find_table(connection, self._database.tables, self._name)
        if stored is None:
            known = [s.watched.name for s in watched_tables.list_tables(connection, self._database.tables)]
            raise UnknownNameError("watched table", self._name, known)
        return stored

    def find_same(self, connection: Connection) -> StoredTable:
        """As `find_stored`, and the given settings are those that are stored."""
        return self._refuse_others(self.find_stored(connection))

    def require_stored(self, connection: Connection, *, check_schema: bool = True) -> StoredTable:
        """The stored table, once a scan has finished."""
        if check_schema:
            self._database.require_schema_on(connection)
        stored = watched_tables.find_table(connection, self._database.tables, self._name)
        if stored is None and self.given is None:
            stored = self.find_stored(connection)
        if stored is None or stored.recipe is None:
            raise NotScannedError(
                f"{self._name!r} has not been scanned yet: run `db-dedup scan {self._name}`"
            )
        return stored

    def require_scanned(self, connection: Connection, *, check_schema: bool = True) -> StoredTable:
        """As `require_stored`, and the given settings are those that the scan was made with."""
        return self._refuse_others(self.require_stored(connection, check_schema=check_schema))

    def _refuse_others(self, stored: StoredTable) -> StoredTable:
        if self.given is None:
            return stored
        # A key left out says what inspection found.
        given = self.given
        given = given if given.key else given.model_copy(update={"key": stored.watched.key})
        if given.resolved() != stored.watched:
            raise RecipeDiffersError(
                f"the settings of {self._name!r} differ from those it was scanned with: "
                f"{setting_differences(stored.watched, given)}; run `db-dedup scan {self._name}`, "
                f"or put the stored values back"
            )
        return stored
