"""Whatever is written: the queue names exactly the rows in which something that counts has changed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, delete, insert, select, update

from tests.servers import Database
from tests.triggers.conftest import attached

LETTERS = Table(
    "letters",
    MetaData(),
    Column("year", Integer, primary_key=True, autoincrement=False),
    Column("no", String(20), primary_key=True),
    Column("body", String(20)),
    Column("region", String(20)),
    Column("status", String(20)),
)
COUNTED = ("body", "region")
Key = tuple[int, str]
Row = dict[str, str | None]
Write = tuple[str, Any, Any]
Queued = tuple[str, str]

keys = st.tuples(st.integers(-1, 0), st.sampled_from(["a", 'x"1', "信"]))
values = st.sampled_from([None, "a", "A", "a ", "ä", "信'%s:x"])
rows = st.fixed_dictionaries({"body": values, "region": values, "status": values})
some_columns = st.dictionaries(st.sampled_from(["body", "region", "status"]), values, min_size=1)
writes = st.one_of(
    st.tuples(st.just("insert"), keys, rows),
    st.tuples(st.just("update"), keys, some_columns),
    st.tuples(st.just("move"), keys, keys),
    st.tuples(st.just("delete"), keys, st.none()),
    st.tuples(st.just("update all"), st.none(), some_columns),
)
transactions = st.lists(st.tuples(st.lists(writes, max_size=5), st.booleans()), max_size=4)


def test_the_queue_is_what_changed(database: Database) -> None:
    LETTERS.create(database.engine)
    change = attached(database, "letters", columns={"body": 1}, within="region").database.tables.change

    @given(transactions)
    @settings(max_examples=60)
    def check(done: list[tuple[list[Write], bool]]) -> None:
        with database.engine.begin() as connection:
            connection.execute(delete(LETTERS))
            connection.execute(delete(change))
        letters = Letters({})
        expected: set[Queued] = set()
        for group, is_committed in done:
            with database.engine.connect() as connection:
                after = Letters({key: dict(row) for key, row in letters.rows.items()})
                queued = {found for write in group for found in after.write(connection, write)}
                if is_committed:
                    connection.commit()
                    letters, expected = after, expected | queued
                else:
                    connection.rollback()
        with database.engine.connect() as connection:
            found = {tuple(row) for row in connection.execute(select(change.c.row_key, change.c.operation))}
        assert found == expected

    check()


class Letters:
    """What the table holds, written at the same time as the table itself."""

    def __init__(self, rows: dict[Key, Row]) -> None:
        self.rows = rows

    def write(self, connection: Connection, write: Write) -> set[Queued]:
        """What should be queued for it; nothing where it would break the primary key or finds no row."""
        what, key, value = write
        if what == "update all":
            connection.execute(update(LETTERS).values(value))
            return {found for k in self.rows for found in self.assign(k, value)}
        if (what == "insert") == (key in self.rows) or (what == "move" and value in self.rows):
            return set()
        at = (LETTERS.c.year == key[0]) & (LETTERS.c.no == key[1])
        if what == "insert":
            connection.execute(insert(LETTERS).values(year=key[0], no=key[1], **value))
            self.rows[key] = dict(value)
            return {(text_of(key), "I")}
        if what == "update":
            connection.execute(update(LETTERS).where(at).values(value))
            return self.assign(key, value)
        if what == "delete":
            connection.execute(delete(LETTERS).where(at))
            del self.rows[key]
            return {(text_of(key), "D")}
        connection.execute(update(LETTERS).where(at).values(year=value[0], no=value[1]))
        self.rows[value] = self.rows.pop(key)
        return {(text_of(key), "D"), (text_of(value), "I")}

    def assign(self, key: Key, values: Row) -> set[Queued]:
        before = dict(self.rows[key])
        self.rows[key].update(values)
        has_changed = any(before[column] != self.rows[key][column] for column in COUNTED)
        return {(text_of(key), "U")} if has_changed else set()


def text_of(key: Key) -> str:
    return json.dumps([str(key[0]), key[1]], ensure_ascii=False, separators=(",", ":"))
