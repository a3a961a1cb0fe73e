"""A rejected pair stays rejected until either text changes: in scan, worker, check and explain alike."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, delete, insert, select, update

from db_dedup import Deduplicator, Text
from db_dedup.app import table_labels
from db_dedup.errors import ScanRunningError
from db_dedup.records import Decision, PairLabel, RepeatedLabels
from db_dedup.store import scans, watched_tables
from tests.servers import Database
from tests.thorough import quick_first

LETTERS = Table(
    "letters",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("title", String(100)),
    Column("body", String(400)),
)
LAMP = (
    "the lamp in our dark street has been broken for months and nobody repairs it although children walk here"
)
WATER = (
    "water stops every night in the whole estate and the manager of the house gives no answer to any letter"
)
ROWS = {
    1: LAMP,
    2: LAMP + " today",
    3: LAMP.upper(),  # a copy of 1
    4: "again " + LAMP,
    5: WATER,
    6: WATER + " at all",
}


def make(engine: Engine, **options: Any) -> Deduplicator:
    LETTERS.create(engine, checkfirst=True)
    with engine.begin() as connection:
        connection.execute(delete(LETTERS))
        connection.execute(
            insert(LETTERS), [{"id": key, "title": "to you", "body": body} for key, body in ROWS.items()]
        )
    return reopened(engine, **options)


def reopened(engine: Engine, **options: Any) -> Deduplicator:
    columns = options.pop("columns", {"body": Text()})
    dedup = Deduplicator(engine, "letters", columns, segmenter="words", **options)
    dedup.upgrade()
    return dedup


def pairs(dedup: Deduplicator, expand: bool = False) -> set[tuple[str, str]]:
    return {(p.key_a, p.key_b) for p in dedup.pairs(expand)}


def reject(dedup: Deduplicator, a: str, b: str) -> Any:
    return dedup.labels().give([PairLabel(a, b, is_duplicate=False)])


def change(engine: Engine, key: int, body: str) -> None:
    with engine.begin() as connection:
        connection.execute(update(LETTERS).where(LETTERS.c.id == key).values(body=body))


def loose(dedup: Deduplicator) -> dict[str, bool]:
    return {group.group_id: group.is_loose for group in dedup.groups()}


def test_a_scan_leaves_a_rejected_pair_out(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    assert ("5", "6") in pairs(dedup)
    given = reject(dedup, "6", "5")
    assert (given.kept, given.faults, given.changes_answer, given.is_queued) == (1, (), True, False)
    assert [d.key_a for d in dedup.verify().answer.pairs_lost.samples] == ["5"]
    dedup.scan()
    assert not {("5", "6")} & pairs(dedup)
    assert "5" not in loose(dedup)
    assert dedup.verify().is_right
    dedup.scan(rebuild=True)
    assert ("5", "6") not in pairs(dedup)


def test_a_group_that_holds_a_rejected_pair_is_flagged(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    before = loose(dedup)
    assert before["1"] is False
    reject(dedup, "2", "4")
    dedup.scan()
    assert ("2", "4") not in pairs(dedup)
    assert loose(dedup) == {**before, "1": True}
    assert set(dedup.members("1")) == {"1", "2", "3", "4"}


@pytest.mark.parametrize("limit", quick_first([2, 1000]))
def test_the_worker_applies_it_and_takes_it_back(database: Database, limit: int) -> None:
    dedup = make(database.engine, abridge_above=limit)
    dedup.attach()
    dedup.scan()
    worker = dedup.worker()
    for a, b in (("5", "6"), ("2", "4"), ("3", "2")):  # 3 is a copy
        before = pairs(dedup, expand=True), loose(dedup)
        assert reject(dedup, a, b).is_queued
        while worker.step():
            pass
        assert not {(a, b), (b, a)} & pairs(dedup, expand=True)
        assert dedup.verify().is_right
        assert dedup.labels().withdraw(b, a).is_queued
        while worker.step():
            pass
        assert (pairs(dedup, expand=True), loose(dedup)) == before
        assert dedup.verify().is_right


def test_it_ends_with_a_change_of_either_text(database: Database) -> None:
    dedup = make(database.engine)
    dedup.attach()
    dedup.scan()
    reject(dedup, "5", "6")
    worker = dedup.worker()
    worker.step()
    assert ("5", "6") not in pairs(dedup)
    change(database.engine, 6, WATER + " at all again")
    worker.step()
    assert ("5", "6") in pairs(dedup)
    assert dedup.labels().stored() == []
    assert dedup.verify().is_right
    change(database.engine, 6, WATER + " at all")
    worker.step()
    assert ("5", "6") not in pairs(dedup), "the texts that were judged are back"
    assert dedup.verify().is_right


def test_it_speaks_of_all_copies(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    reject(dedup, "3", "2")
    dedup.scan()
    assert not {("1", "2"), ("2", "3")} & pairs(dedup, expand=True)
    with database.engine.begin() as connection:
        connection.execute(delete(LETTERS).where(LETTERS.c.id == 3))
    dedup.scan()
    assert ("1", "2") not in pairs(dedup)


def test_check_leaves_out_what_was_rejected(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    reject(dedup, "5", "6")
    dedup.scan()
    assert [match.row_key for match in dedup.check({"body": ROWS[6]})] == ["6"]
    assert {match.row_key for match in dedup.check({"body": ROWS[6] + " ever"})} == {"5", "6"}


def test_explain_names_the_verdict(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    reject(dedup, "5", "6")
    told = dedup.explain("5", "6")
    assert told.decision is Decision.NO_PAIR
    assert [(test.name, test.passed) for test in told.tests][-1] == ("rejected", False)
    assert not told.agrees
    dedup.scan()
    assert dedup.explain("6", "5").agrees
    assert [test.name for test in dedup.explain("1", "2").tests] == ["char_overlap"]


def test_the_later_word_counts(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    reject(dedup, "5", "6")
    given = dedup.labels().give([PairLabel("5", "6", is_duplicate=True)])
    assert given.changes_answer
    assert [(v.key_a, v.key_b, v.is_duplicate) for v in dedup.labels().stored()] in (
        [("5", "6", True)],
        [("6", "5", True)],
    )
    dedup.scan()
    assert ("5", "6") in pairs(dedup)
    again = dedup.labels().give([PairLabel("6", "5", is_duplicate=True)])
    assert (again.kept, again.changes_answer) == (1, False)


def test_what_cannot_be_judged_is_told(database: Database) -> None:
    dedup = make(database.engine)
    change(database.engine, 5, "")
    dedup.scan()
    given = dedup.labels().give(
        [PairLabel(a, b, is_duplicate=False) for a, b in (("1", "3"), ("1", "99"), ("x", "1"), ("5", "1"))]
    )
    assert given.kept == 0
    assert [fault.split(": ")[1] for fault in given.faults] == [
        "they agree in every weighted column, and are exact duplicates whatever their label is",
        "row '99' is not there",
        "row 'x' is not there",
        "row '5' has no text",
    ]
    assert len(dedup.labels().withdraw("1", "2").faults) == 1


@pytest.mark.parametrize("labels_a_transaction", [1, 500])
def test_every_label_is_counted_once(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, labels_a_transaction: int
) -> None:
    """1 and 3 have the same text, so their labels beside 4 are of the same two texts."""
    monkeypatch.setattr(table_labels, "_LABELS_A_TRANSACTION", labels_a_transaction)
    dedup = make(sqlite_database.engine)
    dedup.scan()
    labels = [("1", "3", True), ("1", "4", True), ("3", "4", False), ("5", "6", True), ("6", "5", True)]
    given = dedup.labels().give([PairLabel(*label) for label in labels])
    assert (given.kept, given.faults, given.exact_duplicates) == (2, (), 1)
    assert (given.same_texts, given.repeated) == (RepeatedLabels(1, 1), RepeatedLabels(1, 0))
    assert sorted(label.is_duplicate for label in dedup.labels().stored()) == [False, True]


@pytest.mark.parametrize(
    "settings",
    quick_first(
        [
            {"columns": {"title": Text(), "body": Text()}},
            {"columns": {"body": Text()}, "normaliser": "tweet"},
            {"columns": {"body": Text()}, "within": "title"},
            {"columns": {"body": Text(weight=2)}},
        ]
    ),
)
def test_it_survives_another_recipe(database: Database, settings: dict[str, Any]) -> None:
    dedup = make(database.engine)
    dedup.scan()
    reject(dedup, "5", "6")
    reject(dedup, "2", "4")
    change(database.engine, 4, "at last " + LAMP)
    other = reopened(database.engine, **settings)
    assert other.preview().is_new_recipe
    other.scan()
    found = pairs(other)
    assert ("5", "6") not in found
    assert ("2", "4") in found, "its text is no longer the one that was judged"
    assert other.verify().is_right
    assert len(other.labels().stored()) == 1
    make_again = reopened(database.engine)
    make_again.scan()
    assert ("5", "6") not in pairs(make_again)


def test_nothing_is_taken_while_other_settings_are_scanned(database: Database) -> None:
    dedup = make(database.engine)
    dedup.scan()
    tables = dedup.database.tables
    with database.engine.begin() as connection:
        stored = watched_tables.find_table(connection, tables, "letters")
        assert stored is not None
        watched_tables.take_lease(connection, tables, stored.id, "me")
        scans.begin_scan(connection, tables, stored.id, (stored.recipe or 0) + 1, "x" * 64, "me")
    with pytest.raises(ScanRunningError):
        reject(dedup, "5", "6")
    with database.engine.connect() as connection:
        assert connection.execute(select(tables.verdict)).all() == []
