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


def exactly(rows: Sequence[Sequence[Any]]) -> list[tuple[object, ...]]:
    return sorted(
        (row_id, other, value is None or struct.pack("d", value), None if flag is None else bool(flag))
        for row_id, other, value, flag in rows
    )


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_the_query(database: Database, seed: int) -> None:
    measured.create(database.engine)
    rows = rows_of(Random(seed))
    names = [column.name for column in measured.columns]
    with database.engine.begin() as connection:
        connection.execute(insert(measured), [dict(zip(names, row, strict=True)) for row in rows])
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
    measured.create(database.engine)
    rows = rows_of(Random(bytes_a_text))
    names = [column.name for column in measured.columns]
    dialect = dialect_for(database.engine)
    with database.engine.begin() as connection:
        connection.execute(insert(measured), [dict(zip(names, row, strict=True)) for row in rows])
        connection.execute(text(f"SET SESSION group_concat_max_len = {bytes_a_text}"))
        half: Select[Any] = _QUERY.where(measured.c.other > 0)
        wanted = exactly([row for row in rows if row[1] > 0])
        assert exactly([*number_rows(connection, dialect, half, measured.c.id)]) == wanted
        assert exactly([*stream_number_rows(connection, dialect, half, measured.c.id, 7)]) == wanted


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb", "mysql"], indirect=True)
def test_they_come_in_order_where_it_is_asked_for(database: Database) -> None:
    """Also within a text: the primary key begins with the other column."""
    turned = Table(
        "turned",
        MetaData(),
        Column("other", BigInteger, primary_key=True, autoincrement=False),
        Column("id", BigInteger, primary_key=True, autoincrement=False),
        Column("similarity", Double),
    )
    turned.create(database.engine)
    chance = Random(5)
    found = {(chance.randrange(1, 3_000), other): chance.choice(_FRACTIONS) for other in range(_ROWS)}
    rows = [(row_id, other, fraction) for (row_id, other), fraction in found.items()]
    engine = open_engine(database.url)
    query = select(turned.c.id, turned.c.other, turned.c.similarity)
    with engine.begin() as connection:
        names = ("id", "other", "similarity")
        connection.execute(insert(turned), [dict(zip(names, row, strict=True)) for row in rows])
        dialect = dialect_for(engine)
        read = [*stream_number_rows(connection, dialect, query, turned.c.id, 7, is_ordered=True)]
    engine.dispose()
    assert [tuple(row)[:2] for row in read] == sorted(found)
    assert exactly([(*row, None) for row in read]) == exactly([(*row, None) for row in rows])
