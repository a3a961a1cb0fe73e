"""Checks over HTTP: which rows, how alike, what differs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Any

import pytest
from sqlalchemy import text

from db_dedup import Database, Deduplicator, Text, Value
from db_dedup.sample import Sample
from tests.servers import Database as Served
from tests.web.conftest import Client, running

CHECK = "/tables/petitions/check"


@pytest.fixture
def record(sample: Sample, dedup: Deduplicator) -> dict[str, Any]:
    """The record of a row that has duplicates, with another ending."""
    group = dedup.groups(1)[0]
    petition = next(p for p in sample.petitions if str(p.id) == group.group_id)
    return {"title": petition.title, "content": petition.content + "联系人王先生，共37户。"}


def test_a_duplicate_and_what_differs(client: Client, dedup: Deduplicator, record: dict[str, Any]) -> None:
    expected = dedup.check_in_full(record)
    found = client.post(CHECK, {"record": record}).json()
    assert (found["is_duplicate"], found["too_little_text"]) == (True, False)
    assert [{**asdict(match), "differences": None} for match in expected.matches] == found["matches"]
    compared = client.post(CHECK, {"record": record, "differences": True}).json()
    first = compared["matches"][0]["differences"]
    assert "37" in first["named"]["numbers"]["only_record"]
    assert any("37" in change["record"] for change in first["changes"])


def test_another_writing_of_the_same_value_is_no_difference(sqlite_database: Served) -> None:
    content = "请尽快派人修理小区门口的路灯，已经坏了三个月，晚上很暗，老人摔倒过两次。"
    names = ("amount", "is_urgent", "received")
    with sqlite_database.engine.begin() as connection:
        columns = "content TEXT, amount NUMERIC, is_urgent BOOLEAN, received TIMESTAMP"
        connection.execute(text(f"CREATE TABLE letters (id INTEGER PRIMARY KEY, {columns})"))
        row = {"content": content, "amount": 1, "is_urgent": 1, "received": "2024-05-01 00:00:00"}
        connection.execute(
            text("INSERT INTO letters VALUES (1, :content, :amount, :is_urgent, :received)"), row
        )
    with closing(Database(sqlite_database.url)) as database:
        dedup = Deduplicator(database, "letters", {"content": Text(), **dict.fromkeys(names, Value())})
        dedup.upgrade()
        dedup.scan()
        record = {"amount": 1.0, "is_urgent": True, "received": "2024-05-01T00:00:00"}
        with running(database) as started:
            body = {"record": {"content": f"{content}谢谢", **record}, "differences": True}
            (match,) = started.post("/tables/letters/check", body).json()["matches"]
    assert [(change["column"], change["record"]) for change in match["differences"]["changes"]] == [
        ("content", "谢谢")
    ]


def test_a_new_text_and_too_little_text(client: Client) -> None:
    other = {"title": "建议增设图书馆", "content": "老年大学旁边没有可以安静看书的地方，希望增设一处阅览室。"}
    new = client.post(CHECK, {"record": other}).json()
    assert new == {"is_duplicate": False, "too_little_text": False, "matches": []}
    assert client.post(CHECK, {"record": {}}).json()["too_little_text"]


@pytest.mark.parametrize(
    ("body", "problem", "named"),
    [
        (b'{"record"', "bad-request", "not valid JSON"),
        (b"[" * 100_000, "bad-request", ""),
        (b"\xff\xfe", "bad-request", ""),
        ([], "invalid", "body"),
        ({}, "invalid", "record"),
        ({"record": {"title": ["text"]}}, "invalid", "each value is a text"),
        ({"record": {"title": float("nan")}}, "invalid", "each value is a text"),
        ({"record": {"title": "\ud800"}}, "invalid", "surrogate"),
        ({"record": {"nothing": 1}}, "invalid", "unknown column of table 'petitions': 'nothing'"),
        ({"record": {"x' OR 1=1 --": 1}}, "invalid", "unknown column"),
        ({"record": {}, "block": True}, "invalid", "body.block"),
    ],
)
def test_what_cannot_be_checked_is_a_problem(client: Client, body: object, problem: str, named: str) -> None:
    answer = client.post(CHECK, body)
    assert answer.problem == problem
    assert named in answer.json()["detail"]


def test_a_problem_does_not_repeat_the_text(client: Client) -> None:
    answer = client.post(CHECK, {"record": {"title": ["信访内容"]}, "secret": "信访内容"})
    assert answer.status == 422
    assert "信访内容" not in str(answer.json())
