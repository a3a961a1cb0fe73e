"""For every storable value of every key type: the row's own key leads to that row, and to no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from db_dedup.records import SourceRow
from db_dedup.store.source import Source
from tests.dialects.tables import fill, rows_by_key, run, source_of
from tests.servers import Database

EXAMPLES = settings(max_examples=15, suppress_health_check=list(HealthCheck))

CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=10) | st.text("aA äÄ", max_size=4) | st.integers(-99, 99).map(str)
BYTES = st.binary(max_size=8)


def days(years: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    return st.builds("{:04}-{:02}-{:02}".format, years, st.integers(1, 12), st.integers(1, 28))


def eras(day: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("{}{}".format, day, st.sampled_from(["", " BC"]))


TIMES = st.times().map(str)
ZONELESS = st.builds("{} {}".format, days(st.integers(1, 4000) | st.integers(1, 200_000)), TIMES)
DATES = eras(days(st.integers(1, 4000))) | days(st.integers(1, 9999) | st.integers(1, 5_800_000))
MOMENTS = eras(st.builds("{} {}".format, days(st.integers(1, 4000)), TIMES)) | ZONELESS
ZONED = st.builds("{}+00".format, ZONELESS) | st.builds(
    "{} {}+00 BC".format, days(st.integers(1, 4000)), TIMES
)
INFINITE = st.sampled_from(["infinity", "-infinity"])
NUMERIC = st.sampled_from(["1.0", "1.00", "1", "NaN"])
RANGES = st.lists(st.integers(-99, 99), min_size=2, max_size=2, unique=True).map(sorted)

POSTGRESQL: dict[str, st.SearchStrategy[str]] = {
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False).map(str) | NUMERIC,
    "numeric(12,3)": st.decimals(-(10**8), 10**8, places=3).map(str),
    "text": TEXTS,
    'text COLLATE "any_case"': TEXTS,
    "varchar(20)": TEXTS,
    "char(12)": TEXTS,
    "uuid": st.uuids().map(str),
    "boolean": st.booleans().map(str),
    "bytea": BYTES.map(lambda value: rf"\x{value.hex()}"),
    "date": DATES | INFINITE,
    "timestamp": MOMENTS | INFINITE,
    "timestamp(0)": MOMENTS,
    "timestamptz": ZONED | INFINITE,
    "time": TIMES,
    "timetz": st.builds("{}{:+03}".format, TIMES, st.integers(-12, 12)),
    "inet": st.ip_addresses().map(str),
    "bit varying(8)": st.text("01", max_size=8),
    "int4range": RANGES.map(lambda ends: f"[{ends[0]},{ends[1]})"),
    "numrange": RANGES.map(lambda ends: f"[{ends[0]}.0,{ends[1]})")
    | RANGES.map(lambda e: f"[{e[0]},{e[1]})"),
    "tstzrange": ZONED.map(lambda start: f'["{start}",)'),
    "text[]": st.lists(st.text("ab", min_size=1), max_size=3).map(lambda items: f"{{{','.join(items)}}}"),
    "pair": st.builds("({},{})".format, st.integers(0, 9), st.dates().map(str)),
}
MARIADB: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "BIGINT UNSIGNED": st.integers(0, 2**64 - 1),
    "DECIMAL(30,10)": st.decimals(-(10**15), 10**15, places=10).map(str),
    "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": TEXTS,
    "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": TEXTS,
    "VARCHAR(20) CHARACTER SET utf16": TEXTS,
    "VARCHAR(20) CHARACTER SET latin1": st.text("abcÄäß ", max_size=5),
    "CHAR(12)": TEXTS,
    "DATE": days(st.integers(0, 9999)),
    "DATETIME": st.builds("{} {}".format, days(st.integers(1000, 9999)), TIMES),
    "DATETIME(6)": st.builds("{} {}".format, days(st.integers(1000, 9999)), TIMES),
    "TIMESTAMP(6)": st.builds("{} {}".format, days(st.integers(1971, 2037)), TIMES),
    "TIMESTAMP(3)": st.builds("{} {}".format, days(st.integers(1971, 2037)), TIMES),
    "TIME(6)": st.builds(
        "{}{}:{:02}:{:02}.{:06}".format,
        st.sampled_from(["", "-"]),
        st.integers(0, 837),
        st.integers(0, 59),
        st.integers(0, 59),
        st.integers(0, 999_999),
    ),
    "YEAR": st.integers(1901, 2155),
    "BINARY(4)": st.binary(max_size=4),
    "VARBINARY(8)": BYTES,
    "BIT(64)": st.integers(0, 2**64 - 1),
    "UUID": st.uuids(version=4).map(str),
    "INET6": st.ip_addresses(v=6).map(str),
    "ENUM('calm','Angry','')": st.sampled_from(["calm", "Angry", ""]),
    "SET('a','b','c')": st.sampled_from(["", "a", "a,b", "b,c"]),
}
SQLITE_TYPES = [
    "",
    "TEXT",
    "TEXT COLLATE NOCASE",
    "INTEGER",
    "NUMERIC",
    "DECIMAL(10,2)",
    "UUID",
    "CHAR(16)",
    "BLOB",
]
SQLITE_TYPES += ["DATE", "ANY"]
FLOATS = st.floats(-1e200, 1e200).filter(lambda number: number == 0 or abs(number) > 1e-200)
LOOK_ALIKES = st.sampled_from(
    ["", "10", "1.0", "1e5", "ff", "x'ff'", "t'a'", "n'10'", "x'", "-0", "0x10", "+1", " 1"]
)
SQLITE = TEXTS | LOOK_ALIKES | LOOK_ALIKES.map(str.encode) | BYTES | FLOATS | st.integers(-(2**63), 2**63 - 1)


STORED = {
    "postgresql": 'CAST(id AS text) COLLATE "C"',
    "mariadb": "CAST(id AS BINARY)",
    "sqlite": "typeof(id) || quote(id)",
}
"""A text that differs where two values are stored differently."""


def assert_found(database: Database, source: Source, statement: str, values: Sequence[Any]) -> None:
    """As many keys as different values; each finds its row, once the rows that are stored alike are gone."""
    run(database, "DELETE FROM petitions")
    fill(database, statement, ({"id": value, "body": str(number)} for number, value in enumerate(values)))
    with database.engine.connect() as connection:
        by_key: dict[str, SourceRow] = {}
        for page in source.read_pages(connection):
            for row in page:
                by_key.setdefault(row.row_key, row)
        count = text(f"SELECT count(DISTINCT {STORED[database.name]}) FROM petitions")
        assert len(by_key) == connection.execute(count).scalar_one()
    kept = ", ".join(repr(row.values[0]) for row in by_key.values())
    run(database, f"DELETE FROM petitions WHERE body NOT IN ({kept})")
    found = rows_by_key(database, source, list(by_key))
    assert len(found) == len(by_key)
    assert {row.row_key: row for row in found} == by_key


@pytest.mark.parametrize("kind", POSTGRESQL)
def test_postgresql(postgresql_database: Database, kind: str) -> None:
    run(
        postgresql_database,
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TYPE pair AS (number int, day date)",
        f"CREATE TABLE petitions (id {kind} NOT NULL, body text)",
    )
    source = source_of(postgresql_database, key="id")
    insert = f"INSERT INTO petitions VALUES (CAST(:id AS {kind.partition(' COLLATE')[0]}), :body)"

    @EXAMPLES
    @given(st.lists(POSTGRESQL[kind], min_size=1, max_size=20, unique=True))
    def check(values: list[str]) -> None:
        assert_found(postgresql_database, source, insert, values)

    check()


@pytest.mark.parametrize("kind", MARIADB)
def test_mariadb(mariadb_database: Database, kind: str) -> None:
    run(mariadb_database, f"CREATE TABLE petitions (id {kind} NOT NULL, body VARCHAR(20))")
    source = source_of(mariadb_database, key="id")

    @EXAMPLES
    @given(st.lists(MARIADB[kind], min_size=1, max_size=20, unique=True))
    def check(values: list[Any]) -> None:
        assert_found(mariadb_database, source, "INSERT INTO petitions VALUES (:id, :body)", values)

    check()


@pytest.mark.parametrize("kind", SQLITE_TYPES)
def test_sqlite(sqlite_database: Database, kind: str) -> None:
    run(sqlite_database, f"CREATE TABLE petitions (id {kind} NOT NULL, body TEXT)")
    source = source_of(sqlite_database, key="id")

    @EXAMPLES
    @given(st.lists(SQLITE, min_size=1, max_size=20))
    def check(values: list[Any]) -> None:
        assert_found(sqlite_database, source, "INSERT INTO petitions VALUES (:id, :body)", values)

    check()
