"""Whatever is done to the rows, between scans and in their middle: a rescan gives what a fresh scan gives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, NullPool, create_engine, delete, insert, select, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from tests.bad_input.conftest import Watcher
from tests.scan.conftest import answer
from tests.servers import Database

TEXTS = [
    "",
    "！！",
    "修路灯",
    "小区门口的路灯已经坏了三个星期，晚上回家的老人什么也看不见，请尽快派人来修理。",
    "小区门口的路灯已经坏了三个星期，晚上回家的老人什么也看不见，请尽快派人来修理！谢谢。",
    "小区门口的路灯早就坏了三个星期，晚上回家的老人什么也看不见，请赶快派人来修理。",
    "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请尽快处理。",
    "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请赶快处理。",
    "公交站台的顶棚坏了半年，下雨天老人孩子没有地方躲雨，希望有关部门来修。",
]
"""Copies, near-duplicates, strangers, too little text, none."""

KEYS = st.integers(1, 12)
DAYS = st.integers(1, 3).map(lambda day: datetime(2024, 1, day))
EDITS = st.one_of(
    st.tuples(st.just("write"), KEYS, st.sampled_from(TEXTS), DAYS),
    st.tuples(st.just("write"), KEYS, st.sampled_from(TEXTS), DAYS),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("move"), KEYS, KEYS),
)
ROUNDS = st.lists(
    st.tuples(st.lists(EDITS, min_size=1, max_size=6), st.lists(EDITS, max_size=3)), min_size=1, max_size=3
)
"""What is edited before each scan, and in its middle."""

FEW = how(max_examples=25, suppress_health_check=list(HealthCheck))
FEWER = how(FEW, max_examples=6)


def edit(connection: Connection, kind: str, key: int, *values: Any) -> None:
    table = petitions_table
    there = connection.execute(select(table.c.id).where(table.c.id == key)).first() is not None
    if kind == "delete":
        connection.execute(delete(table).where(table.c.id == key))
    elif kind == "move":
        connection.execute(delete(table).where(table.c.id == values[0]))
        connection.execute(update(table).where(table.c.id == key).values(id=values[0]))
    else:
        row = {"title": "来信", "content": values[0], "created_at": values[1]}
        change = update(table).where(table.c.id == key) if there else insert(table).values(id=key)
        connection.execute(change.values(**row))


def edit_all(engine: Engine, edits: list[Any]) -> None:
    with engine.begin() as connection:
        for one in edits:
            edit(connection, *one)


def watch(engine: Engine, act: Callable[[], object] = lambda: None) -> Deduplicator:
    columns = {"title": 1, "content": 1}
    progress = Watcher(act, "texts of candidates")
    dedup = Deduplicator(
        engine, "petitions", columns, progress, order="created_at", similarity="word_jaccard", radius=11
    )
    dedup.upgrade()
    return dedup


def fresh(rows: list[dict[str, Any]]) -> Any:
    with TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'fresh.db'}", poolclass=NullPool)
        petitions_table.create(engine)
        if rows:
            with engine.begin() as connection:
                connection.execute(insert(petitions_table), rows)
        dedup = watch(engine)
        dedup.scan()
        return answer(dedup)


def check(engine: Engine, rounds: list[Any]) -> None:
    for before, during in rounds:
        edit_all(engine, before)
        watch(engine, lambda during=during: edit_all(engine, during)).scan()  # type: ignore[misc]
        if during:  # rows that came, or were read before they changed, are the next scan's
            watch(engine).scan()
        with engine.connect() as connection:
            rows = [dict(row) for row in connection.execute(select(petitions_table)).mappings()]
        assert answer(watch(engine)) == fresh(rows)


@FEW
@given(ROUNDS)
def test_rescans_in_sqlite(rounds: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'petitions.db'}", poolclass=NullPool)
        petitions_table.create(engine)
        check(engine, rounds)


@FEWER
@given(ROUNDS)
def test_rescans_in_postgresql(postgresql_database: Database, rounds: list[Any]) -> None:
    start_anew(postgresql_database.engine)
    check(postgresql_database.engine, rounds)


@FEWER
@given(ROUNDS)
def test_rescans_in_mariadb(mariadb_or_mysql: Database, rounds: list[Any]) -> None:
    start_anew(mariadb_or_mysql.engine)
    check(mariadb_or_mysql.engine, rounds)


def start_anew(engine: Engine) -> None:
    Deduplicator(engine, "petitions").database.uninstall()
    petitions_table.drop(engine, checkfirst=True)
    petitions_table.create(engine)
