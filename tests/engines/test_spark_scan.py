"""A scan on a real cluster of Spark stores what the embedded engine stores, which then goes on with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, Final

import pytest
from sqlalchemy import (
    Boolean,
    Column,
    Date,
    DateTime,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    create_engine,
    delete,
    insert,
    select,
    text,
    update,
)

import db_dedup
from db_dedup import Deduplicator, Value
from db_dedup.config import EngineSettings, watched_table
from db_dedup.dialects import dialect_for
from db_dedup.errors import DedupError
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.progress import NullProgress
from db_dedup.records import PairLabel
from db_dedup.sample import generate_petitions
from db_dedup.store.inspection import inspect_table
from db_dedup.store.source import Source
from tests import forms
from tests.scan.conftest import answer
from tests.servers import Database, Server, fresh_database
from tests.servers.spark import OPTIONS, Cluster, jar

COLUMNS: Final = {
    "title": db_dedup.Text(weight=2),
    "body": db_dedup.Text(),
    "amount": Value(weight=1),
    "urgent": Value(weight=1),
    "seen": Value(weight=1),
    "code": Value(weight=1),
}
PHRASE: Final = "根据有关规定现将群众反映的问题转送贵单位请认真核实处理并按时反馈办理结果"
"""Many letters that are otherwise unlike have it, so that the keys of its hashes are hot."""

WAYS: Final[list[dict[str, Any]]] = [
    {"within": "region"},
    {"preset": "strict", "radius": 7, "where": "region <> 'no? such: %' OR region IS NULL"},
    {"similarity": "cosine", "threshold": 0.5, "abridge_above": 3, "order": None},
]

letters = Table(
    "letters",
    MetaData(),
    Column("office", String(40), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("title", Text),
    Column("body", Text),
    Column("amount", Numeric(12, 3)),
    Column("urgent", Boolean),
    Column("seen", Date),
    Column("code", LargeBinary(8)),
    Column("region", String(20)),
    Column("received", DateTime),
)


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[EngineSettings]:
    """The settings of the engine, while a session is open that all scans of this module share."""
    from db_dedup.engines.spark.session import open_session  # noqa: PLC0415 - it needs the extra

    jars = tuple(map(jar, ("postgresql", "mariadb")))
    settings = EngineSettings(name="spark", master=cluster.master, jars=jars, options=OPTIONS)
    with open_session(settings):
        yield settings


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a few rows are hot, and several tasks compare and match."""
    from db_dedup.engines.spark import table_scan  # noqa: PLC0415 - it needs the extra

    monkeypatch.setattr(table_scan, "LONGEST_RUN", 5)
    monkeypatch.setattr(table_scan, "LONGEST_BUCKET", 8)
    monkeypatch.setattr(table_scan, "ROWS_A_TASK", 60)
    monkeypatch.setattr(table_scan, "ROWS_OF_KEYS", 100)


def rows() -> list[dict[str, Any]]:
    """Petitions with repeats, letters in a form and with a set phrase, exact duplicates, NULL and blanks."""
    sample = generate_petitions(200, seed=3, duplicate_share=0.4).petitions
    found: list[dict[str, Any]] = [
        {"title": petition.title, "body": petition.content, "region": petition.region} for petition in sample
    ]
    own = forms.texts(60)
    found += [{"title": None, "body": text} for text in forms.in_form([*own, *map(forms.edited, own[:9])])]
    found += [{"body": f"{text[:40]}{PHRASE}{text[40:]}"} for text in forms.texts(12, seed=5)]
    near = forms.texts(1, seed=6)[0] * 2
    found += [{"title": "近似", "body": near[:i] + near[i + 1 :]} for i in range(0, 40, 4)]
    same = {"title": "相同", "body": "路灯坏了三个月，晚上出行很不安全，希望尽快修好。"}
    found += [dict(same) for _ in range(5)]
    found += [{}, {"body": "  "}, {"title": "短"}, {"body": "短文"}]
    for number, row in enumerate(found, 1):
        row_number = number * 37 % 1009  # not in the order they are received
        row |= {"office": rf"局'{number % 3}\{number % 2}", "number": row_number}
        if number % 5:
            row |= {
                "amount": f"{number % 4}.50",
                "urgent": bool(number % 2),
                "seen": f"2024-02-0{1 + number % 3}",
                "code": bytes([number % 3, 255]),
            }
        row["received"] = None if number % 11 == 0 else f"2024-01-{1 + number % 28:02} 08:00:00"
    return found


def fill(engine: Engine) -> None:
    letters.metadata.create_all(engine)
    names = letters.columns.keys()
    with engine.begin() as connection:
        for row in rows():
            values = {name: row.get(name) for name in names}
            if values["seen"]:
                values["seen"] = date.fromisoformat(values["seen"])
            if values["received"]:
                values["received"] = datetime.fromisoformat(values["received"])
            connection.execute(insert(letters), [values])


def watch(database: Database, **options: Any) -> Deduplicator:
    dedup = Deduplicator(database.engine, "letters", COLUMNS, **{"order": "received", **options})
    dedup.upgrade()
    return dedup


def stored(dedup: Deduplicator) -> Sequence[Any]:
    """What is stored of each row, but for ids."""
    columns = dedup.database.tables.fingerprint.c
    chosen = [columns[n] for n in ("row_key", "order_value", "fingerprint", "digest", "form", "feature_set")]
    with dedup.database.engine.connect() as connection:
        return sorted(map(tuple, connection.execute(select(*chosen))))


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_it_stores_what_the_embedded_engine_stores(
    reached: Database, way: int, spark: EngineSettings
) -> None:
    fill(reached.engine)
    embedded = watch(reached, **WAYS[way])
    report = embedded.scan()
    wanted, rows_wanted = answer(embedded), stored(embedded)
    assert len(wanted[0]) > 20
    assert any(row[2] is not None and row[2] >= 1 << 63 for row in rows_wanted), "negative in the database"
    embedded.database.downgrade("base")
    dedup = watch(reached, **WAYS[way])
    again = dedup.scan(engine=spark)
    found = answer(dedup)
    assert stored(dedup) == rows_wanted
    assert found[1:] == wanted[1:]
    abridged = {
        member
        for group, (_, members) in zip(*found[1:], strict=True)
        if group.is_abridged
        for member in members
    }
    assert bool(abridged) == ("abridge_above" in WAYS[way])
    assert [p for p in found[0] if p.key_a not in abridged] == [
        p for p in wanted[0] if p.key_a not in abridged
    ]
    assert dedup.verify().is_right
    counted = ("rows", "fingerprints", "too_little_text", "copies", "groups", "grouped_rows", "largest_group")
    assert [getattr(again, name) for name in counted] == [getattr(report, name) for name in counted]
    assert again.frames == report.frames


@pytest.mark.usefixtures("small_limits")
def test_a_rescan_labels_worker_and_check(reached: Database, spark: EngineSettings) -> None:
    fill(reached.engine)
    dedup = watch(reached)
    dedup.attach()
    dedup.scan(engine=spark)
    first = [pair for pair in dedup.pairs() if pair.distance][0]  # noqa: RUF015 - all are read
    dedup.labels().give([PairLabel(first.key_a, first.key_b, is_duplicate=False)])
    near = {"title": "近似", "body": "希望贵单位尽快修好小区门口坏了三个月的路灯，谢谢。"}
    with reached.engine.begin() as connection:
        connection.execute(update(letters).where(letters.c.number < 60).values(near))
        connection.execute(delete(letters).where(letters.c.number.between(60, 90)))
    report = dedup.scan(engine=spark)
    assert report.pairs_gained
    assert report.pairs_lost
    assert (first.key_a, first.key_b) not in {(pair.key_a, pair.key_b) for pair in dedup.pairs()}
    assert dedup.verify().is_right
    with reached.engine.begin() as connection:
        connection.execute(update(letters).where(letters.c.number.between(100, 130)).values(near))
        connection.execute(delete(letters).where(letters.c.number.between(131, 150)))
    ChangeWorker([dedup.worker()]).run(threading.Event(), drain=True)
    verified = dedup.verify()
    assert verified.is_right
    assert verified.waiting == 0
    assert dedup.check(near)


def run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


@pytest.mark.parametrize("has_namesake", [True, False])
def test_executors_find_the_table_that_the_program_finds(
    servers: dict[str, Server], spark: EngineSettings, has_namesake: bool
) -> None:
    """A search path or a database that only the program's own connections have."""
    with fresh_database(servers["postgresql"]) as database:
        schema = '"it\'s"'
        run(database.engine, f"CREATE SCHEMA {schema}")
        run(database.engine, f"CREATE TABLE {schema}.letters (id INT PRIMARY KEY, body TEXT)")
        if has_namesake:
            run(database.engine, "CREATE TABLE letters (id INT PRIMARY KEY, body TEXT)")
        run(database.engine, "INSERT INTO \"it's\".letters VALUES (1, 'the lamp is broken'), (2, 'thanks')")
        engine = create_engine(database.engine.url, connect_args={"options": '-csearch_path="it\'s",public'})
        dedup = Deduplicator(engine, "letters", {"body": 1})
        dedup.upgrade()
        assert dedup.scan(engine=spark).rows == 2
        assert dedup.verify().is_right
        engine.dispose()
    with fresh_database(servers["mariadb"]) as database:
        name = database.engine.url.database
        engine = create_engine(database.engine.url.set(database="mysql"), connect_args={"database": name})
        assert f"/{name}?" in dialect_for(engine).jdbc(engine).url
        engine.dispose()


def test_a_table_whose_key_cannot_be_divided_is_fingerprinted_in_parts(
    servers: dict[str, Server], spark: EngineSettings
) -> None:
    from db_dedup.engines.spark import reading, session  # noqa: PLC0415 - they need the extra

    with fresh_database(servers["postgresql"]) as database, session.open_session(spark) as opened:
        run(database.engine, "CREATE TABLE days (day DATE PRIMARY KEY, body TEXT)")
        run(
            database.engine,
            "INSERT INTO days SELECT date '2024-01-01' + g, 'text' FROM generate_series(1, 99) g",
        )
        with database.engine.connect() as connection:
            table = inspect_table(connection, "days", None)
        watched = watched_table("days", {"columns": {"body": 1}})
        dialect = dialect_for(database.engine)
        opened.divide(99, 5)
        access = dialect.jdbc(database.engine)
        query, texts = reading.read_texts(opened, access, Source(dialect, table, watched), database.engine)
        assert query.parts == ()
        counts = [len(rows) for rows in texts.rdd.glom().collect()]
    assert sum(counts) == 99
    assert len(counts) == 5
    assert max(counts) < 99


def test_an_error_of_the_database_shows_no_value(servers: dict[str, Server], spark: EngineSettings) -> None:
    """The condition fails in sessions of the executors alone."""
    is_executor = "current_setting('application_name') = 'PostgreSQL JDBC Driver'"
    where = f"CASE WHEN {is_executor} THEN title::int > 0 ELSE true END"
    with fresh_database(servers["postgresql"]) as database:
        fill(database.engine)
        dedup = watch(database, where=where)
        with pytest.raises(DedupError, match=r"PSQLException \(SQLSTATE 22P02\)$") as caught:
            dedup.scan(engine=spark)
        assert "invalid input" not in str(caught.value)


class KillsWorker(NullProgress):
    """Kills a worker, with its executor, when the candidates are searched."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def start(self, step: str, total: int | None) -> None:
        del total
        if step == "candidates":
            self._cluster.kill_worker()


def test_a_worker_that_is_killed_changes_nothing(
    servers: dict[str, Server], cluster: Cluster, spark: EngineSettings
) -> None:
    with fresh_database(servers["postgresql"]) as database:
        fill(database.engine)
        dedup = Deduplicator(
            database.engine, "letters", COLUMNS, order="received", progress=KillsWorker(cluster)
        )
        dedup.upgrade()
        dedup.scan(engine=spark)
        assert len(cluster.workers) == 1
        assert dedup.verify().is_right
