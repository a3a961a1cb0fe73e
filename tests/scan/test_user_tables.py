"""Tables as users have them: any key, any column type, many NULLs, any name."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import (
    Boolean,
    Column,
    Date,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    Uuid,
    insert,
    select,
    text,
)
from sqlalchemy.types import JSON

from db_dedup import Deduplicator
from db_dedup.records.names import view_name
from tests.servers import Database
from tests.thorough import quick_first

SAME = "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请尽快处理。"
NEAR = "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请赶快处理。"
OTHER = "公交站台的顶棚坏了半年，下雨天老人孩子没有地方躲雨，希望有关部门来修。"
BODIES = (SAME, OTHER, SAME, NEAR, None, "", None)

KEYS: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "integer": ({"id": Integer}, [(10,), (9,), (2,), (-4,), (5,), (6,), (7,)]),
    "text": (
        {"id": String(80)},
        [("b'\"\\",), ("a b",), ("编号:1%",), ("z" * 80,), ("Ä",), ("ß",), ("[1]",)],
    ),
    "uuid": ({"id": Uuid}, [(uuid.UUID(int=i * 7919),) for i in range(7)]),
    "composite": (
        {"year": Integer, "no": String(20)},
        [(2024, 'x"1'), (2023, "信"), (2024, "a,b"), (2023, "b"), (1, "c"), (2, "d"), (3, "e")],
    ),
    "date and integer": (
        {"day": Date, "no": Integer},
        [*((dt.date(2024, 2, 29), i) for i in range(3)), *((dt.date(1999, 1, i), 0) for i in range(1, 5))],
    ),
}


def make(database: Database, name: str, columns: list[Column[Any]], rows: list[dict[str, Any]]) -> Table:
    table = Table(name, MetaData(), *columns)
    with database.engine.begin() as connection:
        table.create(connection)
        connection.execute(insert(table), rows)
    return table


def own_view(dedup: Deduplicator, name: str) -> str:
    limits = dedup.database.dialect.capabilities
    namespace = dedup.database.namespace
    view = view_name(
        namespace, name, limits.max_name_length, limit_counts_bytes=limits.name_limit_counts_bytes
    )
    quote = dedup.database.engine.dialect.identifier_preparer.quote_identifier
    return f"{quote(namespace.schema)}.{quote(view)}" if namespace.schema else quote(view)


@pytest.mark.parametrize("kind", KEYS)
def test_any_key(database: Database, kind: str) -> None:
    types, keys = KEYS[kind]
    columns: list[Column[Any]] = [
        Column(name, type_, primary_key=True, autoincrement=False) for name, type_ in types.items()
    ]
    columns.append(Column("body", Text))
    names = [*types, "body"]
    rows = [dict(zip(names, (*key, body), strict=True)) for key, body in zip(keys, BODIES, strict=True)]
    table = make(database, "petitions", columns, rows)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    report = dedup.scan()
    assert (report.rows, report.too_little_text, report.copies, report.pairs, report.groups) == (
        7,
        3,
        1,
        1,
        1,
    )
    (group,) = dedup.groups()
    assert len(dedup.members(group.group_id)) == 3
    with database.engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {own_view(dedup, 'petitions')}")).mappings().all()
        bodies = connection.execute(select(table.c.body)).scalars().all()
    assert sorted(row["body"] for row in found) == sorted(b for b in bodies if b in (SAME, NEAR))
    assert {row["group_size"] for row in found} == {3}
    assert sum(bool(row["is_representative"]) for row in found) == 1
    assert {match.row_key for match in dedup.check({"body": NEAR})} == set(dedup.members(group.group_id))


def test_the_typed_key_decides_who_came_first(database: Database) -> None:
    """2 came before 10, though not as text; the key is the order where no column is named."""
    columns: list[Column[Any]] = [
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("body", Text),
    ]
    make(
        database,
        "petitions",
        columns,
        [{"id": 10, "body": SAME}, {"id": 9, "body": SAME}, {"id": 2, "body": NEAR}],
    )
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    assert [group.group_id for group in dedup.groups()] == ["2"]
    assert sorted((p.key_a, p.key_b) for p in dedup.pairs()) == [("2", "9"), ("9", "10")]


ODD_NAMES = ("select", "我的 投诉", "quo\"te's", "per%cent :colon", "x" * 63, "长" * 21)


@pytest.mark.parametrize("name", quick_first(ODD_NAMES))
def test_any_name(database: Database, name: str) -> None:
    columns: list[Column[Any]] = [
        Column(f"{name[:20]}k", Integer, primary_key=True, autoincrement=False),
        Column(name[:60], Text),
        Column("group_id", Integer),
    ]
    rows = [{f"{name[:20]}k": i, name[:60]: body, "group_id": 5} for i, body in enumerate(BODIES)]
    make(database, name, columns, rows)
    dedup = Deduplicator(database.engine, name, {name[:60]: 1, "group_id": {"kind": "value"}}, within=())
    dedup.upgrade()
    report = dedup.scan()
    assert (report.rows, report.copies, report.pairs) == (7, 3, 1)
    with database.engine.connect() as connection:
        found = connection.exec_driver_sql(f"SELECT * FROM {own_view(dedup, name)}")
        assert len(found.all()) == 6
        assert list(found.keys())[-1] == "own_group_id"
    dedup.database.uninstall()
    with database.engine.connect() as connection:
        assert connection.execute(select(Table(name, MetaData(), autoload_with=connection))).all()


def test_any_column_type(database: Database) -> None:
    """Every kind of value is read, and equal values are equal features in every database."""
    columns: list[Column[Any]] = [
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("amount", Numeric(12, 4)),
        Column("ratio", Float),
        Column("open", Boolean),
        Column("day", Date),
        Column("at", DateTime),
        Column("scan", LargeBinary),
        Column("data", JSON(none_as_null=True)),
        Column("code", Uuid),
    ]
    full = {
        "amount": Decimal("12.5000"),
        "ratio": 0.25,
        "open": True,
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 2, 29, 12, 30, 1),
        "scan": b"\x00\xff",
        "data": {"b": 1, "a": ["信"]},
        "code": uuid.UUID(int=5),
    }
    empty = dict.fromkeys(full)
    other = {**full, "amount": Decimal("12.6")}
    rows = [{"id": i, **row} for i, row in enumerate((full, full, empty, empty, other))]
    make(database, "records", columns, rows)
    dedup = Deduplicator(
        database.engine, "records", {name: {"kind": "value"} for name in full}, radius=11, threshold=0.6
    )
    dedup.upgrade()
    report = dedup.scan()
    assert (report.copies, report.too_little_text) == (1, 2)
    # What the databases themselves store differently stays out: SQLite has no UUID, MariaDB no JSON.
    portable = {name: {"kind": "value"} for name in full if name not in ("data", "code")}
    Deduplicator(database.engine, "records", portable).scan()
    table = dedup.database.tables.fingerprint
    with database.engine.connect() as connection:
        stored = connection.execute(select(table.c.fingerprint).where(table.c.row_key == "0")).scalar_one()
    assert stored == 3734636441687590961


def test_many_nulls(database: Database) -> None:
    """Rows that are blank where they differ are no duplicates for being blank."""
    columns: list[Column[Any]] = [
        Column("id", Integer, primary_key=True, autoincrement=False),
        *(Column(f"c{i}", String(30)) for i in range(10)),
    ]
    rows = [{"id": i, **{f"c{j}": None for j in range(10)}, f"c{i % 10}": f"只有这个{i}"} for i in range(40)]
    make(database, "records", columns, rows)
    dedup = Deduplicator(database.engine, "records", {f"c{i}": {"kind": "value"} for i in range(10)})
    dedup.upgrade()
    report = dedup.scan()
    assert (report.too_little_text, report.pairs, report.groups) == (40, 0, 0)
