"""Pairs are listed in one order, however a database plans to read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, event, text

from db_dedup import Deduplicator
from tests.servers import Database

_LAMPS = "the street lamps in our lane have been dark for a month"
_LETTERS = [
    *(f"{name}: the lift of our house has stood still for three days" for name in ("Ann", "Bob", "Eve")),
    *(f"{_LAMPS}, please {wish}" for wish in ("repair them", "repair all of them", "repair them now")),
]
_COPIES = 3


def _make_sqlite_read_backwards(engine: Engine) -> None:
    event.listen(engine, "connect", lambda driver, _: driver.execute("PRAGMA reverse_unordered_selects = ON"))


def _make_postgresql_read_without_indexes(engine: Engine) -> None:
    with engine.begin() as connection:
        # A changed row comes last in its table.
        connection.execute(text("UPDATE dedup.fingerprint SET found_at = found_at WHERE id % 3 = 1"))
        connection.execute(text("UPDATE dedup.pair SET found_at = found_at WHERE id_a % 2 = 1"))
    ways = ("indexscan", "bitmapscan", "nestloop", "mergejoin")
    statement = "; ".join(f"SET enable_{way} = off" for way in ways)
    event.listen(engine, "connect", lambda driver, _: driver.execute(statement))


_OTHER_PLANS: dict[str, Callable[[Engine], None]] = {
    "sqlite": _make_sqlite_read_backwards,
    "postgresql": _make_postgresql_read_without_indexes,
}


@pytest.mark.parametrize("database", _OTHER_PLANS, indirect=True)
@pytest.mark.parametrize("abridge_above", [2, 1_000])
def test_another_plan_gives_the_same_order(database: Database, abridge_above: int) -> None:
    engine = database.engine
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE letters (id INT PRIMARY KEY, body TEXT)"))
        for key, body in enumerate(_LETTERS * _COPIES):
            connection.execute(text("INSERT INTO letters VALUES (:k, :b)"), {"k": key, "b": body})
    dedup = Deduplicator(engine, "letters", {"body": 1}, threshold=0.5, abridge_above=abridge_above)
    dedup.upgrade()
    dedup.scan()
    before = [[*dedup.pairs(expand)] for expand in (False, True)]
    same_text = len(_LETTERS) * (_COPIES - 1)
    assert [len(pairs) for pairs in before] == [
        same_text + (4 if abridge_above == 2 else 6),
        len(_LETTERS) * 3 + 6 * _COPIES**2,
    ]
    _OTHER_PLANS[database.name](engine)
    engine.dispose()
    assert [[*dedup.pairs(expand)] for expand in (False, True)] == before
