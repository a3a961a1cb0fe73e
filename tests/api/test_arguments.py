"""Whatever a caller hands over, an error is a DedupError of one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import db_dedup
from db_dedup import (
    Database,
    DedupError,
    Deduplicator,
    InvalidArgumentError,
    PairLabel,
    Settings,
    Text,
    TextPair,
    Value,
    WatchedTable,
    compare_methods,
    find_duplicates,
    include_name,
    view_aside,
)

ANY: Any = object()
RECORD = {"title": "关于停水的投诉"}
FRAME = pd.DataFrame({"title": ["a", "b"]})


def wrong(value: object) -> Any:
    """A value that a type checker would refuse."""
    return value


def enter(context: Any) -> None:
    with context:
        pass


WITHOUT_A_DATABASE: dict[str, Callable[[], object]] = {
    "a weight below 1": lambda: Text(weight=-1),
    "a weight that is no number": lambda: Value(weight=ANY),
    "a weight by its place": lambda: Text(*wrong([2])),
    "an unknown setting of a column": lambda: Text(**wrong({"heavy": 2})),
    "a table without columns": lambda: WatchedTable(name="t", columns={}),
    "settings of tables that are none": lambda: Settings(tables=ANY),
    "no settings file": lambda: Settings.from_file("nowhere.toml"),
    "a settings file that is no path": lambda: Settings.from_file(ANY),
    "a folder for a settings file": lambda: Settings.from_file(Path()),
    "an unknown table of the settings": lambda: Settings().watched("t"),
    "a table of the settings that is no name": lambda: Settings().watched(ANY),
    "a pair of texts of which one is none": lambda: compare_methods([TextPair("a", ANY, True)]),
    "a pair of texts of which the first is none": lambda: compare_methods([TextPair(ANY, "a", True)]),
    "a pair of texts that says nothing": lambda: compare_methods([TextPair("a", "b", ANY)]),
    "an engine that is none": lambda: Database(ANY),
    "a path for an engine": lambda: Database(wrong(Path("x.db"))),
    "no engine": lambda: Database(wrong(None)),
    "a URL that is none": lambda: Database("petitions.db"),
    "an unknown kind of database": lambda: Database("petitions://x"),
    "an unknown driver": lambda: Database("postgresql+nothing://x"),
    "no such file": lambda: Database("sqlite:///nowhere/petitions.db"),
    "a schema that is no name": lambda: Database("sqlite:///x.db", schema=ANY, create=True),
    "a prefix that is no text": lambda: Database("sqlite:///x.db", prefix=ANY, create=True),
    "a store that is none": lambda: Database("sqlite:///x.db", create=True, store=ANY),
    "a frame that is none": lambda: find_duplicates(ANY),
    "a frame and one name": lambda: find_duplicates(FRAME, "title"),
    "a frame and a number": lambda: find_duplicates(FRAME, ANY),
    "a frame and a column that is not there": lambda: find_duplicates(FRAME, ["content"]),
    "a frame and a column that is no name": lambda: find_duplicates(FRAME, wrong([1])),
    "a frame and a weight below 1": lambda: find_duplicates(FRAME, {"title": -1}),
    "a frame and an unknown setting": lambda: find_duplicates(FRAME, ["title"], radios=3),
    "a frame and a progress that is none": lambda: find_duplicates(FRAME, ["title"], progress=ANY),
    "a namespace that is none": lambda: include_name(ANY),
    "a view aside of nothing": lambda: enter(view_aside(ANY, "petitions")),
    "a view aside of no name": lambda: enter(view_aside(None, ANY)),
}


@pytest.mark.parametrize("name", WITHOUT_A_DATABASE)
def test_without_a_database(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(WITHOUT_A_DATABASE[name])


def other(dedup: Deduplicator, *arguments: Any, **options: Any) -> Deduplicator:
    return Deduplicator(dedup.database, *arguments, **options)


def together(dedup: Deduplicator, *arguments: Any) -> object:
    with dedup.database.engine.connect() as connection:
        return dedup.check_together(connection, *arguments)


OF_A_TABLE: dict[str, Callable[[Deduplicator], object]] = {
    "a table that is no name": lambda d: other(d, ANY, {"title": 1}),
    "a table without a name": lambda d: other(d, ""),
    "a list of columns": lambda d: other(d, "petitions", ["title"]),
    "no columns": lambda d: other(d, "petitions", {}),
    "a column that is no name": lambda d: other(d, "petitions", {1: Text()}),
    "a column that is nothing": lambda d: other(d, "petitions", {"title": ANY}),
    "an unknown option": lambda d: other(d, "petitions", {"title": 1}, radios=3),
    "a radius that is no number": lambda d: other(d, "petitions", {"title": 1}, radius=ANY),
    "options without columns": lambda d: other(d, "petitions", radius=3),
    "settings twice": lambda d: other(d, WatchedTable(name="t", columns={"a": Text()}), radius=3),
    "two stores": lambda d: other(d, "petitions", store="sqlite:///x.db"),
    "a progress that is none": lambda d: other(d, "petitions", progress=ANY),
    "a table that is not there": lambda d: other(d, "letters", {"title": 1}).scan(),
    "a table that is not watched": lambda d: other(d, "letters").groups(),
    "a segmenter that is not there": lambda d: other(d, "petitions", {"title": 1}, segmenter="x").preview(),
    "a negative limit of groups": lambda d: d.groups(limit=-1),
    "a limit of groups that is no number": lambda d: d.groups(limit=ANY),
    "a negative limit of pairs": lambda d: list(d.pairs(limit=-1)),
    "a negative limit of expanded pairs": lambda d: list(d.pairs(expand=True, limit=-1)),
    "a limit that is true": lambda d: d.groups(limit=True),
    "a negative number of members": lambda d: d.members_of(["1"], each=-1),
    "groups that are a text": lambda d: d.members_of("1"),
    "groups that are none": lambda d: d.members_of(ANY),
    "a group that is no key": lambda d: d.members(ANY),
    "a history of no key": lambda d: d.group_history(ANY),
    "a history of a text with a lone surrogate": lambda d: d.group_history("\ud800"),
    "a number of changes that is none": lambda d: d.group_changes(0),
    "a record that is a text": lambda d: d.check(wrong("关于停水的投诉")),
    "a record that is none": lambda d: d.check(wrong(None)),
    "a column that is not there": lambda d: d.check({"titel": "x"}),
    "a column of a record that is no name": lambda d: d.check(wrong({1: "x"})),
    "records that are one record": lambda d: d.check_many(wrong(RECORD)),
    "records that are none": lambda d: d.check_many(wrong([RECORD, None])),
    "a connection that is none": lambda d: d.check(RECORD, ANY),
    "an engine for a connection": lambda d: d.check(RECORD, wrong(d.database.engine)),
    "a row key without a block": lambda d: d.check(RECORD, row_key=1),
    "a block without a connection": lambda d: d.check(RECORD, block=True),
    "fewer keys than records": lambda d: d.check_many([RECORD, RECORD], block=True, row_keys=[1]),
    "keys that are a text": lambda d: d.check_many([RECORD], block=True, row_keys="1"),
    "records together that are one record": lambda d: together(d, wrong(RECORD), [1]),
    "records together and fewer keys": lambda d: together(d, [RECORD, RECORD], [1]),
    "records together and a deleted key that is a text": lambda d: together(d, [RECORD], [1], "1"),
    "records together and a key that is none": lambda d: together(d, [RECORD], [ANY]),
    "records together without a connection": lambda d: d.check_together(ANY, [RECORD], [1]),
    "checked columns without a connection": lambda d: d.checked_columns(ANY),
    "a key that is none": lambda d: d.explain(ANY, 2),
    "a key of two columns": lambda d: d.explain((1, 2), 2),
    "a key that is a date": lambda d: d.explain(pd.Timestamp(0).date(), 2),
    "a key that is a fraction": lambda d: d.explain(wrong(1.5), 2),
    "a key that is true": lambda d: d.explain(True, 2),
    "the same key twice": lambda d: d.explain(1, "1"),
    "a key that is not there": lambda d: d.explain(1, 10**30),
    "a text that is no key": lambda d: d.explain("one", "two"),
    "a text with a lone surrogate": lambda d: d.members("\ud800"),
    "texts of no keys": lambda d: d.texts().read(ANY),
    "texts of a key that is none": lambda d: d.texts().read([ANY]),
    "texts of a record that is none": lambda d: d.texts().of_record(ANY),
    "texts of a record with another column": lambda d: d.texts().of_record({"nothing": 1}),
    "the nearest of no keys": lambda d: d.texts().nearest(ANY),
    "labels that are none": lambda d: d.labels().give(ANY),
    "a label that is a tuple": lambda d: d.labels().give(wrong([("1", "2", True)])),
    "a label of a key that is none": lambda d: d.labels().give([PairLabel(ANY, 2, True)]),
    "a label that says nothing": lambda d: d.labels().give([PairLabel(1, 2, ANY)]),
    "a label to calibrate by that says nothing": lambda d: d.calibrate([PairLabel(1, 2, ANY)]),
    "a key to withdraw that is none": lambda d: d.labels().withdraw(ANY, 2),
    "a negative number of questions": lambda d: d.labels().questions(-1),
    "a record to reserve that is none": lambda d: d.reserve(ANY),
    "a reservation without time": lambda d: d.reserve(RECORD, 0),
    "a reservation to confirm that is none": lambda d: d.confirm(ANY),
    "a reservation to release that is none": lambda d: d.release(ANY),
    "labels to calibrate by that are none": lambda d: d.calibrate(ANY),
    "labels to compare by that are none": lambda d: d.compare(ANY),
    "a plan that is none": lambda d: d.compare([], ANY),
    "a batch of no changes": lambda d: d.worker(batch_changes=0),
    "triggers of a table that is not there": lambda d: other(d, "letters", {"title": 1}).attach(),
    "an unknown revision": lambda d: d.database.downgrade("9999"),
    "a revision that is none": lambda d: d.database.downgrade(ANY),
    "a connection of the database that is none": lambda d: d.database.is_installed(ANY),
    "a schema by a connection that is none": lambda d: d.database.require_schema_on(ANY),
    "a name that no database takes": lambda d: other(d, "\ud800", {"title": 1}).scan(),
}


@pytest.mark.parametrize("name", OF_A_TABLE)
def test_of_a_table(name: str, scanned: Deduplicator) -> None:
    assert_refused(lambda: OF_A_TABLE[name](scanned))


def test_a_closed_connection(scanned: Deduplicator) -> None:
    with scanned.database.engine.connect() as connection:
        pass
    assert_refused(lambda: scanned.check(RECORD, connection))
    assert_refused(lambda: scanned.check(RECORD, connection, block=True))
    assert_refused(lambda: enter(view_aside(connection, "petitions")))


def test_a_session_whose_own_rows_cannot_be_written(scanned: Deduplicator) -> None:
    engine = create_engine("sqlite://")
    with Session(engine) as session:
        session.connection().close()
        assert_refused(lambda: scanned.check(RECORD, session, block=True))
    engine.dispose()


def test_an_engine_of_a_database_that_is_gone(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'nowhere' / 'petitions.db'}")
    dedup = Deduplicator(engine, "petitions", {"title": Text()})
    for call in (dedup.upgrade, dedup.scan, dedup.groups, dedup.preview, dedup.database.status, dedup.attach):
        assert_refused(call)
    engine.dispose()


def test_what_a_caller_would_expect_besides(scanned: Deduplicator) -> None:
    """A wrong value is a ValueError, a wrong type a TypeError, for those who catch these."""
    assert issubclass(InvalidArgumentError, ValueError)
    assert issubclass(InvalidArgumentError, TypeError)
    with pytest.raises(ValueError, match="limit should be a whole number from 0 on, not -1"):
        scanned.groups(limit=-1)
    with pytest.raises(InvalidArgumentError, match="weight"):
        Text(weight=-1)


def test_a_registry_of_sessions_is_taken(scanned: Deduplicator) -> None:
    sessions = scoped_session(sessionmaker(scanned.database.engine))
    assert scanned.check(RECORD, wrong(sessions)) == scanned.check(RECORD)
    sessions.remove()


def test_the_walk_goes_through_the_whole_api() -> None:
    """Each public function and method that takes an argument is called above."""
    source = Path(__file__).read_text(encoding="utf-8")
    methods = {
        name
        for kind in (Deduplicator, Database, Settings, db_dedup.TableLabels, db_dedup.RowTexts)
        for base in kind.__mro__
        if base.__module__.startswith("db_dedup")
        for name, member in vars(base).items()
        if not name.startswith("_") and callable(member) and member.__code__.co_argcount > 1
    }
    # These take what cannot be wrong, or a connection within which the caller works.
    rest = {"scan", "batches", "reading", "check_in_full"}
    assert [name for name in sorted(methods - rest) if f".{name}(" not in source] == []


def assert_refused(call: Callable[[], object]) -> None:
    with pytest.raises(DedupError) as caught:
        call()
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert "0x" not in message
