"""Rows that differ in their spelling alone are exact duplicates, have the same labels, and are explained."""

from __future__ import annotations

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, insert
from sqlalchemy import Text as LongText

from db_dedup import Deduplicator, Text, Value
from db_dedup.records import Decision, PairLabel
from tests.servers import Database

ROWS = {
    1: ("二〇二四年三月五日，小区停车场向业主多收了三千五百元管理费，物业没有开具任何发票。", "后湖"),
    2: ("2024年3月5日，小區停車場向業主多收了3500元管理費，物業沒有開具任何發票。", "后湖"),
    3: ("二零二四年三月五日，小区停车场向业主多收了叁仟伍佰元管理费，物业没有开具任何发票。", "后湖"),
    4: ("2024年三月十六日，小區停車場向業主多收了三千五百元管理費，物業沒有開具任何收據。", "后湖"),
    5: ("河边的路灯坏了半个月，晚上散步的老人看不清台阶，希望尽快派人维修更换灯泡。", "后湖"),
    6: ("二〇二四年三月五日，小区停车场向业主多收了三千五百元管理费，物业没有开具任何发票。", "後湖"),
}


@pytest.fixture
def engine(sqlite_database: Database) -> Engine:
    letters = Table(
        "letters",
        MetaData(),
        Column("id", Integer, primary_key=True),
        Column("content", LongText),
        Column("place", LongText),
    )
    letters.create(sqlite_database.engine)
    with sqlite_database.engine.begin() as connection:
        rows = [{"id": key, "content": text, "place": place} for key, (text, place) in ROWS.items()]
        connection.execute(insert(letters), rows)
    return sqlite_database.engine


@pytest.fixture
def dedup(engine: Engine) -> Deduplicator:
    dedup = Deduplicator(engine, "letters", {"content": Text()})
    dedup.upgrade()
    return dedup


def test_texts_of_another_spelling_are_exact_duplicates(dedup: Deduplicator) -> None:
    report = dedup.scan()
    assert report.copies == 3
    assert {(p.key_a, p.key_b) for p in dedup.pairs() if p.similarity == 1} == {
        ("1", "2"),
        ("1", "3"),
        ("1", "6"),
    }
    assert {(p.key_a, p.key_b) for p in dedup.pairs() if p.similarity != 1} == {("1", "4")}


def test_values_of_another_spelling_are_not(engine: Engine) -> None:
    dedup = Deduplicator(engine, "letters", {"content": Text(), "place": Value()})
    dedup.upgrade()
    dedup.scan()
    assert {(p.key_a, p.key_b) for p in dedup.pairs() if p.distance == 0} == {("1", "2"), ("1", "3")}


def test_a_label_is_for_every_spelling(dedup: Deduplicator) -> None:
    dedup.scan()
    assert ("1", "4") in {(p.key_a, p.key_b) for p in dedup.pairs()}
    dedup.labels().give([PairLabel("2", "4", is_duplicate=False)])
    dedup.scan()
    assert ("1", "4") not in {(p.key_a, p.key_b) for p in dedup.pairs()}


def test_explain_marks_what_differs_after_normalising(dedup: Deduplicator) -> None:
    dedup.scan()
    found = dedup.explain("1", "4")
    assert found.decision is Decision.DUPLICATE_PAIR
    [column] = found.columns
    assert (column.value_a, column.value_b) == (ROWS[1][0], ROWS[4][0])
    assert column.text_a.startswith("2024年3月5日,小区停车场向业主多收了3500元管理费")
    assert column.text_b.startswith("2024年3月16日,小区停车场向业主多收了3500元管理费")
    for text, tokens in ((column.text_a, column.tokens_a), (column.text_b, column.tokens_b)):
        assert "".join(token.text for token in tokens) == text
    assert [t.text for t in column.tokens_a if t.mark == "differs"] == ["5", "发票"]
    assert [t.text for t in column.tokens_b if t.mark == "differs"] == ["16", "收据"]
