"""Changes that the host application makes to its table, inside `view_aside`."""

from __future__ import annotations

import os
import re
import signal
import warnings
from contextlib import ExitStack

from sqlalchemy import ColumnElement, Connection, Engine, Table, create_engine, inspect, text, update

from db_dedup import view_aside
from tests.worker.child import FORKSERVER, SECONDS
from tests.worker.history.interruptions import InterruptedRunError
from tests.worker.history.steps import Migration
from tests.worker.history.writers import values
from tests.worker.watched import Watched

NEW_NAME = "words"
"""Of the body, for as long as it is renamed."""


def migrate(watched: Watched, url: str, key: int, migration: Migration) -> None:
    """Play a migration; a column that is renamed has its name back at the end.

    Args:
        watched: the table.
        url: of its database, for a process that is killed.
        key: of the row that is written in the same block.
        migration: what is done.

    Raises:
        InterruptedRunError: as the migration wants it.
    """
    engine, letters, row = watched.dedup.database.engine, watched.letters, watched.at(key)
    try:
        if migration.end == "killed":
            process = FORKSERVER.Process(target=_be_killed, args=(url, letters, row, migration))
            process.start()
            process.join(SECONDS)
            assert process.exitcode == -signal.SIGKILL
        else:
            _run(engine, letters, row, migration)
    finally:
        with engine.connect() as connection:
            is_renamed = NEW_NAME in _columns(connection, letters)
        if is_renamed:
            _run(engine, letters, row, migration._replace(change="rename back", end="done"))


def _be_killed(url: str, letters: Table, row: ColumnElement[bool], migration: Migration) -> None:
    _run(create_engine(url), letters, row, migration)


def _run(engine: Engine, letters: Table, row: ColumnElement[bool], migration: Migration) -> None:
    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter(
            "ignore", UserWarning
        )  # while the body is renamed our settings name what is gone
        if migration.through == "connection":
            connection = stack.enter_context(engine.begin())
            stack.enter_context(view_aside(connection, letters.name))
        else:
            stack.enter_context(view_aside(engine, letters.name))
            connection = stack.enter_context(engine.begin())
        _change(connection, letters.name, migration.change)
        there = _columns(connection, letters)
        new = {name: value for name, value in values(migration.row).items() if name in there}
        connection.execute(update(letters).where(row).values(new))
        match migration.end:
            case "raised":
                raise InterruptedRunError
            case "killed":
                if migration.through == "engine":
                    connection.commit()
                os.kill(os.getpid(), signal.SIGKILL)


def _change(connection: Connection, table: str, change: str) -> None:
    match change:
        case "add":
            has_note = any(column["name"] == "note" for column in inspect(connection).get_columns(table))
            what = "DROP COLUMN note" if has_note else "ADD COLUMN note VARCHAR(9)"
            connection.execute(text(f"ALTER TABLE {table} {what}"))
        case "rename":
            connection.execute(text(f"ALTER TABLE {table} RENAME COLUMN body TO {NEW_NAME}"))
        case "rename back":
            connection.execute(text(f"ALTER TABLE {table} RENAME COLUMN {NEW_NAME} TO body"))
        case "widen":
            _widen(connection, table)


def _widen(connection: Connection, table: str) -> None:
    found = {column["name"]: str(column["type"]) for column in inspect(connection).get_columns(table)}
    width = 10 + int(re.findall(r"\d+", found["region"])[0])
    match connection.dialect.name:
        case "postgresql":
            connection.execute(text(f"ALTER TABLE {table} ALTER COLUMN region TYPE varchar({width})"))
        case "sqlite":
            _make_anew(connection, table, width)
        case _:
            connection.execute(text(f"ALTER TABLE {table} MODIFY COLUMN region varchar({width})"))


def _make_anew(connection: Connection, table: str, width: int) -> None:
    """SQLite's way of giving a column another type."""
    query = text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :name")
    statement = str(connection.scalar(query, {"name": table}))
    connection.exec_driver_sql("DROP TABLE IF EXISTS made_anew")  # left by one that broke off
    statement = re.sub(r"(?<=region VARCHAR)\(\d+\)", f"({width})", statement)
    connection.exec_driver_sql(re.sub(table, "made_anew", statement, count=1))
    for then in (
        f"INSERT INTO made_anew SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE made_anew RENAME TO {table}",
    ):
        connection.exec_driver_sql(then)


def _columns(connection: Connection, letters: Table) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(letters.name)}
