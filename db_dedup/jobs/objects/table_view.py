"""The view of one watched table's own rows with their groups: `duplicates_of_<table>`."""

import hashlib

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    column,
    inspect,
    or_,
    select,
    table,
)
from sqlalchemy.sql.elements import quoted_name

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.stored_names import stored_as
from db_dedup.jobs.objects.lock_waits import short_wait
from db_dedup.records.names import view_name
from db_dedup.schema.tables import Tables
from db_dedup.schema.views import CreateView, DropView
from db_dedup.store import watched_tables
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable
from db_dedup.translation import Phrase

_OUR_COLUMNS = ("group_id", "group_size", "is_representative")
_CLASH_PREFIX = "own_"


class TableView:
    """Makes and drops the view of one table."""

    def __init__(self, dialect: Dialect, tables: Tables, source: Source) -> None:
        self._dialect = dialect
        self._tables = tables
        self._source = source

    def name_for(self, stored: StoredTable) -> str:
        """Return the view's name, without its schema."""
        limits = self._dialect.capabilities
        return view_name(
            self._tables.namespace,
            stored.watched.name,
            limits.max_name_length,
            limit_counts_bytes=limits.name_limit_counts_bytes,
        )

    def statements(self, stored: StoredTable) -> tuple[DropView, CreateView]:
        """Return the DDL that drops the view and creates it again."""
        name, schema = self.name_for(stored), self._tables.namespace.schema
        return DropView(name, schema), CreateView(name, schema, self._query(stored.id))

    def refresh(self, connection: Connection, stored: StoredTable) -> None:
        """Create the view, unless it is already as it would be created now.

        Raises:
            DatabaseUnavailableError: another transaction uses the view or the table.
        """
        if self.fault(connection, stored) is None:
            return
        drop, create = self.statements(stored)
        name = self.name_for(stored)
        watched_tables.name_view(connection, self._tables, stored.id, name)
        with short_wait(connection, self._dialect, Phrase("the view {name}", name=name)):
            connection.execute(drop)
            connection.execute(create)
        digest = self._digest(connection, create, name)
        watched_tables.set_view(connection, self._tables, stored.id, name, digest)

    def fault(self, connection: Connection, stored: StoredTable) -> str | None:
        """Return what is wrong with the view; None where it is as it would be created now."""
        name = self.name_for(stored)
        views = inspect(connection).get_view_names(self._tables.namespace.schema)
        if stored_as(connection)(name) not in views:
            return Phrase("the view {name} is missing", name=name)
        if stored.view_digest != self._digest(connection, self.statements(stored)[1], name):
            return Phrase("the view {name} is not as it was made, or the table has changed since", name=name)
        return None

    def _digest(self, connection: Connection, create: CreateView, name: str) -> str:
        """Return a digest of the statement that creates the view and of what the database stores of it."""
        made = self._dialect.view_definition(connection, name, self._tables.namespace.schema)
        statement = create.compile(dialect=connection.dialect)
        return hashlib.sha256(f"{statement}\n{made}".encode()).hexdigest()

    def _query(self, table_id: int) -> Select[tuple[object, ...]]:
        member, first = (self._tables.fingerprint.alias(n) for n in ("member", "first"))
        watched = self._tables.watched_table.alias("watched")
        columns = self._source.table.columns
        own = table(
            quoted_name(self._source.table.name, quote=None),
            *(column(c.name) for c in columns),
            schema=self._source.table.schema,
        ).alias("own")
        return (
            select(
                first.c.row_key.label("group_id"),
                first.c.group_size.label("group_size"),
                (member.c.id == member.c.group_id).label("is_representative"),
                *(own.c[c.name].label(new) for c, new in zip(columns, self._column_names(), strict=True)),
            )
            .select_from(member)
            .join(watched, (watched.c.id == member.c.table_id) & (watched.c.recipe == member.c.recipe))
            .join(first, first.c.id == member.c.group_id)
            .join(own, self._own_row(own, member.c.row_key))
            .where(
                watched.c.id == table_id,
                # A view that somebody made by hand has no digest.
                or_(watched.c.view_digest.is_(None), watched.c.view_digest != watched_tables.OUTDATED_VIEW),
                member.c.group_id.is_not(None),
            )
        )

    def _own_row(self, own: FromClause, row_key: ColumnElement[str]) -> ColumnElement[bool]:
        """Return whether a row of the user's has the key, in both forms.

        The key as a value of theirs finds their row by its index, and their row as a key finds ours. The
        second form is left out where the settings of the session that reads decide what the text is.
        """
        keys, dialect = self._source.key_columns, self._dialect
        as_value = dialect.key_matches(keys, own, row_key)
        if any(dialect.depends_on_session(key, is_key=True) for key in keys):
            return as_value
        return and_(as_value, row_key == dialect.row_key(keys, own))

    def _column_names(self) -> list[str]:
        """Return the table's own column names; one that is taken gets a prefix, repeated until it is free."""
        taken = set(_OUR_COLUMNS) | {c.name.casefold() for c in self._source.table.columns}
        names = []
        for c in self._source.table.columns:
            name = c.name
            if name.casefold() in _OUR_COLUMNS:
                while name.casefold() in taken:
                    name = _CLASH_PREFIX + name
                taken.add(name.casefold())
            names.append(name)
        return names
