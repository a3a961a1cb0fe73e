"""Rows of numbers, read as single rows or as many in one text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Engine,
    MetaData,
    Select,
    Table,
    event,
    insert,
    select,
    text,
)

from db_dedup.dialects import dialect_for, open_engine
from db_dedup.store.number_rows import number_rows, stream_number_rows
from tests.servers import Database

measured = Table(
    "measured",
    MetaData(),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("other", BigInteger, primary_key=True, autoincrement=False),
    Column("similarity", Double),
    Column("is_part", Boolean),
)
_QUERY = select(measured)
_ROWS = 400
_FRACTIONS = [
    None,
    0.0,
    1.0,
    1 / 3,
    -1e-300,
    5e-324,
    1.7976931348623157e308,
    0.1 + 0.2,
    1.2345678901234568e17,
]


def rows_of(chance: Random) -> list[tuple[int, int, float | None, bool | None]]:
    """Numbers of all sizes and signs; of the fractions each bit counts."""
    found = {}
    for _ in range(_ROWS):
        key = chance.randrange(1, 5_000), chance.randrange(-(2**63), 2**63)
        any_size = chance.random() * 10 ** chance.randrange(-9, 9)
        fraction = chance.choice([*_FRACTIONS, chance.random(), any_size])
        found[key] = (*key, fraction, chance.choice([None, False, True]))
    return list(found.values())


def store(engine: Engine, rows: Sequence[Sequence[Any]]) -> None:
    names = [column.name for column in measured.columns]
    measured.create(engine)
    with engine.begin() as connection:
        connection.execute(insert(measured), [dict(zip(names, row, strict=True)) for row in rows])


def exactly(rows: Sequence[Sequence[Any]]) -> list[tuple[object, ...]]:
    return sorted(
        (row_id, other, value is None or struct.pack("d", value), None if flag is None else bool(flag))
        for row_id, other, value, flag in rows
    )


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_the_query(database: Database, seed: int) -> None:
    rows = rows_of(Random(seed))
    store(database.engine, rows)
    engine = open_engine(database.url)  # whose sessions have no small limit of what is joined
    dialect = dialect_for(engine)
    statements: list[str] = []
    with engine.connect() as connection:
        event.listen(connection, "before_cursor_execute", lambda *found: statements.append(found[2]))
        assert exactly([*number_rows(connection, dialect, _QUERY, measured.c.id)]) == exactly(rows)
        assert exactly([*stream_number_rows(connection, dialect, _QUERY, measured.c.id, 7)]) == exactly(rows)
        reads = [statement for statement in statements if statement.startswith("SELECT")]
        assert len(reads) == 2, "rows were read again although no text was cut"
        none = _QUERY.where(measured.c.id < 0)
        assert [*number_rows(connection, dialect, none, measured.c.id)] == []
    engine.dispose()


@pytest.mark.parametrize("database", ["mariadb", "mysql"], indirect=True)
@pytest.mark.parametrize("bytes_a_text", [4, 60, 200, 1_000])
def test_a_text_that_the_server_has_cut_is_read_row_by_row(database: Database, bytes_a_text: int) -> None:
    rows = rows_of(Random(bytes_a_text))
    store(database.engine, rows)
    dialect = dialect_for(database.engine)
    with database.engine.begin() as connection:
        connection.execute(text(f"SET SESSION group_concat_max_len = {bytes_a_text}"))
        half: Select[Any] = _QUERY.where(measured.c.other > 0)
        wanted = exactly([row for row in rows if row[1] > 0])
        assert exactly([*number_rows(connection, dialect, half, measured.c.id)]) == wanted
        assert exactly([*stream_number_rows(connection, dialect, half, measured.c.id, 7)]) == wanted


@pytest.mark.parametrize("bytes_a_text", [None, 60])
@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb", "mysql"], indirect=True)
def test_they_come_in_order_where_it_is_asked_for(database: Database, bytes_a_text: int | None) -> None:
    """The primary key gives another order, also within a text, and where the server cuts all texts."""
    chance = Random(5)
    keys = {(chance.randrange(2**40), other) for other in chance.sample(range(1, 20_000), _ROWS)}
    rows = [(row_id, other, chance.choice(_FRACTIONS), None) for row_id, other in keys]
    store(database.engine, rows)
    turned = select(measured.c.other, measured.c.id, measured.c.similarity)
    engine = open_engine(database.url)
    dialect = dialect_for(engine)
    with engine.connect() as connection:
        if bytes_a_text is not None and database.name in ("mariadb", "mysql"):
            connection.execute(text(f"SET SESSION group_concat_max_len = {bytes_a_text}"))
        read = [*stream_number_rows(connection, dialect, turned, measured.c.other, 7, is_ordered=True)]
    engine.dispose()
    assert [(row[1], row[0]) for row in read] == sorted(keys, key=lambda key: key[::-1])
    assert exactly([(row_id, other, value, None) for other, row_id, value in read]) == exactly(rows)
