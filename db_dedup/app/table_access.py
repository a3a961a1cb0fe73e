"""One table in a database: its settings, given or stored, and the reader of its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from db_dedup.app.database import Database
from db_dedup.app.engines import find_engine
from db_dedup.app.setting_differences import setting_differences
from db_dedup.config import WatchedTable
from db_dedup.errors import NotScannedError, RecipeDiffersError, TableGoneError, UnknownNameError
from db_dedup.jobs.context import JobContext
from db_dedup.progress import Progress
from db_dedup.records import PairLabel, RowKey
from db_dedup.records.recipe import Recipe
from db_dedup.store import watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.frames import serving_frames
from db_dedup.store.inspection import check_columns, inspect_table, refuse_our_names, resolve_key
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable
from db_dedup.translation import Phrase


class TableAccess:
    """Finds what is stored of a table, and what a job on it needs.

    Attributes:
        given: the settings that the caller gave; None if the stored ones are used.
    """

    def __init__(self, database: Database, name: str, given: WatchedTable | None, progress: Progress) -> None:
        self._database, self._name, self._progress = database, name, progress
        self.given = given
        self._accepted: WatchedTable | None = None

    def settings(self, connection: Connection) -> WatchedTable:
        """Return the given settings, or else the stored ones."""
        return self.given or self.find_stored(connection).watched

    def context(self, connection: Connection, watched: WatchedTable) -> JobContext:
        """Return the context of a job by these settings, without a list of frames."""
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
            find_engine(),
        )

    def stored_context(self, connection: Connection, stored: StoredTable) -> JobContext:
        """Return the context of a job by the recipe that serves, with its list of frames.

        Raises:
            FrameListError: the stored list cannot be used.
        """
        frames = serving_frames(connection, self._database.tables, stored)
        return replace(self.context(connection, stored.watched), frames=frames)

    def recipe(self, connection: Connection, stored: StoredTable) -> Recipe:
        """Return the recipe that serves; raises what `stored_context` raises."""
        frames = serving_frames(connection, self._database.tables, stored)
        return replace(stored.watched.recipe, frames=frames)

    def store(self, stored: StoredTable) -> FingerprintStore:
        """Return the stored fingerprints of the recipe in use."""
        return FingerprintStore.serving(self._database.dialect, self._database.tables, stored)

    def source(self, connection: Connection, watched: WatchedTable) -> tuple[WatchedTable, Source]:
        """Return (the settings, completed by inspection of the table; the reader of the user's table)."""
        with self._database.reading(connection) as rows:
            return self.inspected(connection, watched, rows)

    def inspected(
        self, connection: Connection, watched: WatchedTable, rows: Connection
    ) -> tuple[WatchedTable, Source]:
        """Do the same as `source`, through the connection `rows` to the user's rows."""
        database = self._database
        refuse_our_names(
            rows, database.source_dialect, database.namespace, watched.table_name, watched.schema_name
        )
        try:
            table = inspect_table(rows, watched.table_name, watched.schema_name)
        except UnknownNameError as error:
            if self._was_scanned(connection, watched):
                raise TableGoneError(watched.name, watched.table_name, error.near) from None
            raise
        check_columns(watched, table)
        key = resolve_key(table, watched.key)
        watched = watched.model_copy(update={"key": tuple(column.name for column in key)})
        return watched, Source(database.source_dialect, table, watched)

    def _was_scanned(self, connection: Connection, watched: WatchedTable) -> bool:
        """Return whether an answer is stored for a table of this schema and name."""
        if not self._database.is_installed(connection):
            return False
        stored = watched_tables.find_table(connection, self._database.tables, watched.name)
        if stored is None or stored.recipe is None:
            return False
        old = stored.watched
        return (old.schema_name, old.table_name) == (watched.schema_name, watched.table_name)

    def row_keys(self, connection: Connection, given: Iterable[RowKey]) -> list[str]:
        """Return a caller's keys as row keys; the table is inspected only if a key is not given as text.

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
        """Return the same labels with their keys as text."""
        keys = self.row_keys(connection, [key for label in given for key in (label.key_a, label.key_b)])
        pairs = zip(keys[::2], keys[1::2], given, strict=True)
        return [PairLabel(key_a, key_b, label.is_duplicate) for key_a, key_b, label in pairs]

    def find_stored(self, connection: Connection) -> StoredTable:
        """Return what is stored of the table.

        Raises:
            UnknownNameError: nothing is stored.
        """
        stored = watched_tables.find_table(connection, self._database.tables, self._name)
        if stored is None:
            known = [s.watched.name for s in watched_tables.list_tables(connection, self._database.tables)]
            nothing = Phrase(
                "none before the first scan: `db-dedup init` writes its settings; in Python, give columns"
            )
            raise UnknownNameError(Phrase("watched table"), self._name, known, if_none=nothing)
        return stored

    def find_same(self, connection: Connection) -> StoredTable:
        """Return the same as `find_stored`; raise RecipeDiffersError if the given settings differ."""
        return self._refuse_others(self.find_stored(connection))

    def require_stored(self, connection: Connection, *, check_schema: bool = True) -> StoredTable:
        """Return what is stored of the table.

        Raises:
            NotScannedError: no scan has finished.
        """
        if check_schema:
            self._database.require_schema_on(connection)
        stored = watched_tables.find_table(connection, self._database.tables, self._name)
        if stored is None and self.given is None:
            stored = self.find_stored(connection)
        if stored is None or stored.recipe is None:
            raise NotScannedError(
                "{name!r} has not been scanned yet: run `db-dedup scan {name}`", name=self._name
            )
        return stored

    def require_scanned(self, connection: Connection, *, check_schema: bool = True) -> StoredTable:
        """Return the same as `require_stored`; raise RecipeDiffersError if the given settings differ."""
        return self._refuse_others(self.require_stored(connection, check_schema=check_schema))

    def _refuse_others(self, stored: StoredTable) -> StoredTable:
        # Each check asks, and comparing takes as long as reading what is stored.
        if self.given is None or stored.watched is self._accepted:
            return stored
        # Without a key in the settings, the key is the one that inspection found for the scan.
        given = self.given
        given = given if given.key else given.model_copy(update={"key": stored.watched.key})
        if given.resolved() != stored.watched:
            raise RecipeDiffersError(
                "the settings of {name!r} differ from those it was scanned with: "
                "{differences}; run `db-dedup scan {name}`, or put the stored values back",
                name=self._name,
                differences=setting_differences(stored.watched, given),
            )
        self._accepted = stored.watched
        return stored
