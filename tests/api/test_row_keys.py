"""A row may be named by the value of its key, on every database, as well as by its text."""

import enum
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    DateTime,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    Uuid,
    insert,
)
from sqlalchemy.dialects import mysql

from db_dedup import Deduplicator, InvalidArgumentError, PairLabel, RowKey
from tests.servers import Database

MOMENT = DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
NIGHT = datetime(2019, 2, 14, 20)
BODY = "小区门口的路灯坏了三个月，晚上出行很不安全，希望有关部门尽快派人来修好它们。"

KEYS: dict[str, tuple[list[Any], list[RowKey]]] = {
    "integer": ([Integer], [1, -17, 2**31 - 1]),
    "bigint": ([BigInteger], [2**62, -(2**62), 7]),
    "string": ([String(20)], ["007", "a b", "é"]),
    "uuid": ([Uuid], [UUID(int=1), UUID(int=2**127 + 5), UUID(int=3)]),
    "date": ([Date], [date(2019, 2, 14), date(2020, 12, 31), date(1999, 1, 1)]),
    "moment": ([MOMENT], [NIGHT, NIGHT + timedelta(seconds=0.5), datetime(2020, 1, 1)]),
    "decimal": ([Numeric(10, 2)], [Decimal("1.5"), Decimal(2), Decimal("-0.25")]),
    "two columns": ([String(20), Integer], [("north", 17), ("north", 18), ("so\"uth\\", 17)]),
    "three columns": ([Uuid, Date, Integer], [(UUID(int=n), date(2020, 1, n), n) for n in (1, 2, 3)]),
}  # fmt: skip


def letters(database: Database, kind: str) -> Deduplicator:
    """Three rows of the same text, scanned."""
    types, keys = KEYS[kind]
    name = f"letters_{list(KEYS).index(kind)}"
    columns = [Column(f"key_{place}", kind, primary_key=True) for place, kind in enumerate(types)]
    table = Table(name, MetaData(), *columns, Column("body", Text))
    with database.engine.begin() as connection:
        table.create(connection)
        for key in keys:
            values = key if isinstance(key, tuple) else (key,)
            named = {f"key_{place}": value for place, value in enumerate(values)}
            connection.execute(insert(table).values(body=BODY, **named))
    dedup = Deduplicator(database.engine, name, {"body": 1})
    dedup.upgrade()
    dedup.scan()
    return dedup


def test_every_kind_of_key(database: Database) -> None:
    for kind, (_, keys) in KEYS.items():
        dedup = letters(database, kind)
        (group,) = dedup.groups()
        found = dedup.texts().read(keys)
        assert len(found) == 3, kind
        texts = list(found)
        assert dedup.explain(keys[0], keys[1]).row_b.row_key in texts, kind
        assert dedup.explain(keys[0], texts[2]).agrees, kind
        assert any(len(dedup.members(key)) == 3 for key in keys), kind
        assert any(dedup.group_history(key).is_group for key in keys), kind
        members = dedup.members_of(keys)
        assert sorted(members) == sorted(texts), kind
        assert len(members[group.group_id]) == 3, kind
        given = dedup.labels().give([PairLabel(keys[0], keys[1], is_duplicate=True)])
        assert given.exact_duplicates == 1, kind  # the rows were found
        with pytest.raises(InvalidArgumentError):
            dedup.explain((*texts[:1], "x", "y", "z"), keys[1])


def test_members_of_more_groups_than_a_statement_has_parameters(postgresql_database: Database) -> None:
    dedup = letters(postgresql_database, "integer")
    dedup.scan()
    (group,) = dedup.groups()
    asked = [*map(str, range(10**6, 10**6 + 70_000)), group.group_id]
    found = dedup.members_of(asked)
    assert list(found) == asked
    assert found[group.group_id] == dedup.members(group.group_id)


def test_a_check_that_blocks_takes_a_value(database: Database) -> None:
    dedup = letters(database, "integer")
    dedup.attach()
    dedup.scan()
    with database.engine.connect() as connection:
        found = dedup.check({"body": BODY}, connection, block=True, row_key=-17)
        connection.rollback()
    assert {match.row_key for match in found} == {"1", str(2**31 - 1)}


class Place(enum.StrEnum):
    NORTH = "007"


def test_what_is_as_good_as_a_value(sqlite_database: Database) -> None:
    """Numbers of numpy, members of an enumeration, a list for a tuple."""
    numbers, names = letters(sqlite_database, "integer"), letters(sqlite_database, "string")
    as_good: list[Any] = [np.int64(1), (-17,)]
    assert set(numbers.texts().read(as_good)) == {"1", "-17"}
    assert set(names.texts().read([Place.NORTH])) == {"007"}
    pairs = letters(sqlite_database, "two columns")
    as_list: list[Any] = [["north", 17]]
    assert set(pairs.texts().read(as_list)) == {'["north","17"]'}


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("integer", UUID(int=1)),
        ("integer", date(2020, 1, 1)),
        ("integer", True),
        ("integer", 1.0),
        ("integer", None),
        ("integer", ()),
        ("string", 7),
        ("uuid", 1),
        ("date", datetime(2020, 1, 1)),
        ("date", 1),
        ("decimal", date(2020, 1, 1)),
        ("two columns", 17),
        ("two columns", ("north",)),
        ("two columns", ("north", 17, 18)),
        ("two columns", (17, 17)),
        ("two columns", ("north", None)),
    ],
)
def test_another_type_or_number_of_values_is_refused(sqlite_database: Database, kind: str, key: Any) -> None:
    dedup = letters(sqlite_database, kind)
    with pytest.raises(InvalidArgumentError, match="key"):
        dedup.explain(key, KEYS[kind][1][0])


def test_the_fault_of_a_key_counts_its_values(sqlite_database: Database) -> None:
    dedup = letters(sqlite_database, "two columns")
    for key, fault in (
        (17, "2 columns, .* has 1 value$"),
        (("north", 17, 18), "2 columns, .* has 3 values$"),
    ):
        with pytest.raises(InvalidArgumentError, match=fault):
            dedup.explain(key, KEYS["two columns"][1][0])


def test_moments_with_a_zone(postgresql_database: Database) -> None:
    """They are the same moment in whatever zone."""
    with postgresql_database.engine.begin() as connection:
        at = Column("at", DateTime(timezone=True), primary_key=True)
        table = Table("letters", MetaData(), at, Column("body", Text))
        table.create(connection)
        for hour in (1, 2):
            connection.execute(insert(table).values(at=datetime(2020, 1, 1, hour, tzinfo=UTC), body=BODY))
    dedup = Deduplicator(postgresql_database.engine, "letters", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    eastern = datetime(2020, 1, 1, 9, tzinfo=timezone(timedelta(hours=8)))
    assert dedup.explain(eastern, datetime(2020, 1, 1, 2)).decision == "copies"
