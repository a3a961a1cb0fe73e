"""A query read in parts."""

from __future__ import annotations

import gc
import warnings

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, func, insert, select, table
from sqlalchemy.exc import DBAPIError

from db_dedup.store.streams import parts_of
from tests.servers import Database

numbers = Table("numbers", MetaData(), Column("id", Integer, primary_key=True))


@pytest.fixture
def five_rows(database: Database) -> Database:
    numbers.create(database.engine)
    with database.engine.begin() as connection:
        connection.execute(insert(numbers), [{"id": number} for number in range(1, 6)])
    return database


def test_the_rows_come_in_parts(five_rows: Database) -> None:
    with five_rows.engine.connect() as connection:
        parts = list(parts_of(connection, select(numbers.c.id).order_by(numbers.c.id), 2))
    assert [[row[0] for row in part] for part in parts] == [[1, 2], [3, 4], [5]]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_an_error_closes_the_server_s_cursor(five_rows: Database) -> None:
    cursors = select(func.count()).select_from(table("pg_cursors"))
    with five_rows.engine.connect() as connection:
        parts = parts_of(connection, select(numbers.c.id), 2)
        next(iter(parts))
        assert connection.scalar(cursors) == 1
        with pytest.raises(KeyError):
            parts.throw(KeyError)
        assert connection.scalar(cursors) == 0


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_session_that_has_ended_leaves_no_open_cursor(five_rows: Database) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with five_rows.engine.connect() as connection, five_rows.engine.connect() as other:
            session = connection.scalar(select(func.pg_backend_pid()))
            other.scalar(select(func.pg_terminate_backend(session)))
            with pytest.raises(DBAPIError):
                list(parts_of(connection, select(numbers.c.id), 2))
        gc.collect()
    assert not warned
