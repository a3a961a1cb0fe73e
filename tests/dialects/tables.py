"""The user's side of a test: a table as it stands in their database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, FromClause, MetaData, Select, Table, column, table, text
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import NullType

from db_dedup.config import watched_table
from db_dedup.dialects import dialect_for
from db_dedup.records import SourceRow, SourceTable
from db_dedup.schema.types import KeyText
from db_dedup.store.inspection import inspect_table
from db_dedup.store.source import Source
from tests.servers import Database


def run(database: Database, *statements: str) -> None:
    with database.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def fill(database: Database, statement: str, rows: Iterable[dict[str, Any]]) -> None:
    with database.engine.begin() as connection:
        connection.execute(text(statement), list(rows))


def inspected(database: Database, name: str = "petitions") -> SourceTable:
    with database.engine.connect() as connection:
        return inspect_table(connection, name)


def source_of(database: Database, name: str = "petitions", **settings: Any) -> Source:
    settings.setdefault("columns", {"body": 1})
    return Source(dialect_for(database.engine), inspected(database, name), watched_table(name, settings))


def rows_of(database: Database, source: Source, page_size: int = 5000) -> list[SourceRow]:
    return [row for page in source.pages(database.engine, page_size) for row in page]


def rows_by_key(database: Database, source: Source, keys: Sequence[str]) -> list[SourceRow]:
    with database.engine.connect() as connection:
        return list(source.read_rows(connection, keys))


def as_clause(source: SourceTable, name: str | None = None) -> FromClause:
    """The table for queries of the test's own, under another name if need be."""
    columns = (column(quoted_name(c.name, quote=True), NullType()) for c in source.columns)
    return table(quoted_name(name or source.name, quote=True), *columns)


EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}


def plan_of(connection: Connection, statement: Any) -> str:
    """How the database would run a statement, on one line."""
    compiled = statement.compile(connection, compile_kwargs={"render_postcompile": True})
    explain = EXPLAIN.get(connection.dialect.name, "EXPLAIN FORMAT=TRADITIONAL")
    values = {
        name: compiled._bind_processors.get(name, lambda value: value)(value)
        for name, value in compiled.params.items()
    }
    parameters = tuple(values[name] for name in compiled.positiontup) if compiled.positional else values
    rows = connection.exec_driver_sql(f"{explain} {compiled}", parameters)
    return " | ".join(" ".join(str(value) for value in row) for row in rows)


def store_keys(database: Database, name: str, keys: Select[Any]) -> Table:
    """A table of ours with these row keys."""
    ours = Table(name, MetaData(), Column("row_key", KeyText, primary_key=True))
    ours.create(database.engine)
    with database.engine.begin() as connection:
        connection.execute(ours.insert().from_select(["row_key"], keys))
    return ours
