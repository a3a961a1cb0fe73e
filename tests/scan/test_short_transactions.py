"""A new recipe's answer is written in short transactions, between which others may write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import Engine, event, text, update

from db_dedup.cli.demo import petitions
from db_dedup.dialects import dialect_for
from db_dedup.jobs import pace
from db_dedup.jobs.pace import Pace
from db_dedup.jobs.scan import short_transactions
from db_dedup.progress import NullProgress
from db_dedup.sample import Sample
from tests.scan.conftest import answer, fill_database, watch
from tests.servers import Database

ROWS = 50
OTHER = {"term_frequency": "log"}


class Noting:
    """A progress that keeps the total of each step and how it advanced; only the search has no total."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[int, list[int]]] = {}
        self._at = ""

    def start(self, step: str, total: int | None) -> None:
        assert total is not None or step in ("keys", "candidates", "matching")
        self._at = step
        self.steps[step] = total or 0, []

    def advance(self, amount: int) -> None:
        self.steps[self._at][1].append(amount)

    def finish(self) -> None:
        """Nothing to keep."""


@pytest.fixture
def brief_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each piece had taken as long as a transaction may."""
    monkeypatch.setattr(pace, "_ONE_WRITER", Pace(seconds=0, gap_seconds=0, rows=ROWS))


class Transactions:
    """How many rows of our tables each transaction on an engine has written."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self._now = 0

    def executed(self, _c: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("BEGIN"):
            self._now = 0
        elif any(f"dedup_{name}" in statement for name in ("fingerprint", "pair", "band")):
            self._now += max(0, cursor.rowcount)

    def committed(self, _: Any) -> None:
        self.rows.append(self._now)


@contextmanager
def counted(engine: Engine) -> Iterator[Transactions]:
    found = Transactions()
    listeners: list[tuple[str, Any]] = [("after_cursor_execute", found.executed), ("commit", found.committed)]
    for name, listener in listeners:
        event.listen(engine, name, listener)
    yield found
    for name, listener in listeners:
        event.remove(engine, name, listener)


@pytest.mark.usefixtures("brief_transactions")
def test_no_transaction_under_a_new_recipe_writes_more_than_a_piece(
    sqlite_database: Database, sample: Sample
) -> None:
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine)
    with counted(sqlite_database.engine) as first:
        dedup.scan()
    dedup = watch(sqlite_database.engine, **OTHER)
    with counted(sqlite_database.engine) as second:
        dedup.scan()
    assert sum(second.rows) > sum(first.rows) > 20 * ROWS
    assert max(first.rows) == max(second.rows) == ROWS
    assert dedup.verify().is_right


@pytest.mark.usefixtures("brief_transactions")
def test_others_may_write_between_any_two_transactions(sqlite_database: Database, sample: Sample) -> None:
    """A writer who does not wait finds the database free whenever a transaction of the scan has ended."""
    fill_database(sqlite_database.engine, sample)
    with sqlite_database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE host (x INTEGER)"))
    dedup = watch(sqlite_database.engine)
    written = []
    begin = short_transactions.ShortTransactions._begin

    def beginning(self: short_transactions.ShortTransactions) -> Any:
        with sqlite_database.engine.begin() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 0")
            connection.exec_driver_sql("INSERT INTO host VALUES (1)")
        written.append(1)
        return begin(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(short_transactions.ShortTransactions, "_begin", beginning)
        dedup.scan()
    assert len(written) > 20


@pytest.mark.parametrize("is_unhurried", [False, True])
def test_the_gap_is_as_long_as_whoever_waited_may_sleep(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, is_unhurried: bool
) -> None:
    now: list[float] = [100.0]
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=slept.append)
    monkeypatch.setattr(short_transactions, "time", clock)
    engine, lease = sqlite_database.engine, cast("Any", SimpleNamespace(fence=lambda _: None))
    dialect = dialect_for(engine)
    aim = pace.pace_of(dialect, is_unhurried=is_unhurried)
    with short_transactions.ShortTransactions(
        engine, dialect, lease, NullProgress(), is_unhurried=is_unhurried
    ) as writing:
        first = writing.connection()
        now[0] += aim.seconds / 2
        assert writing.connection() is first
        now[0] += aim.seconds / 2
        assert writing.connection() is not first
        assert writing.reader, "to read commits"
        assert writing.would_wait
    assert slept == [0.0, pytest.approx(aim.gap_after(aim.seconds))]


def test_a_short_answer_is_one_transaction(sqlite_database: Database, sample: Sample) -> None:
    """A pause after each piece would make the scan of a small table a slow one."""
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "_ONE_WRITER", Pace(seconds=3600, gap_seconds=0, rows=ROWS))
        with counted(sqlite_database.engine) as found:
            dedup.scan()
    # Fingerprints; pairs, groups and the index of sketches.
    assert len([rows for rows in found.rows if rows]) == 2


def test_the_progress_says_how_much_of_the_answer_is_written(
    sqlite_database: Database, sample: Sample
) -> None:
    fill_database(sqlite_database.engine, sample)
    watch(sqlite_database.engine).scan()
    noted = Noting()
    dedup = watch(sqlite_database.engine, progress=noted, **OTHER)
    dedup.scan()
    for step in ("writing the answer", "removing former sketches", "removing former pairs"):
        total, advances = noted.steps[step]
        assert total == sum(advances) > 0, step
    assert answer(dedup)[0]


def test_the_progress_of_a_second_scan_has_totals_too(
    database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that have changed, then pairs and groups, each in short transactions."""
    long = Pace(seconds=3600, gap_seconds=0, rows=ROWS)
    for name in ("_ONE_WRITER", "_MANY_WRITERS"):
        monkeypatch.setattr(pace, name, long)
    fill_database(database.engine, sample)
    noted = Noting()
    dedup = watch(database.engine, progress=noted, frames=False)
    dedup.scan()
    with database.engine.begin() as connection:
        content = petitions.c.content + "另附照片。"
        connection.execute(update(petitions).where(petitions.c.id % 4 > 0).values(content=content))
    noted.steps.clear()
    dedup.scan()
    for step in ("writing the answer", "writing pairs and groups"):
        total, advances = noted.steps[step]
        assert total == sum(advances) > ROWS
        assert max(advances) <= ROWS
