"""The form of a pair of posts: in `pairs`, the view, JSON and Python; by scan, worker and check alike."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from sqlalchemy import delete, insert, text, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as table
from tests.cli.conftest import run, succeed, view, write_settings
from tests.servers import Database

POST = "The bridge over the river is closed until Friday because of the flood, please take the other road"
POSTS = {
    9001: POST,
    9002: f"RT @name: {POST}",
    9003: f"{POST}\nRetweeted by NAME",
    9004: f"@name {POST}!!! #traffic",
    9005: POST.replace("Friday", "Monday"),
}
FORMS = {
    ("9001", "9002"): "unofficial_retweet",
    ("9001", "9003"): "official_retweet",
    ("9001", "9004"): "reply",
    ("9001", "9005"): "none",
    ("9002", "9003"): "official_retweet",
    ("9002", "9004"): "unofficial_retweet",
    ("9002", "9005"): "unofficial_retweet",
    ("9003", "9004"): "official_retweet",
    ("9003", "9005"): "official_retweet",
    ("9004", "9005"): "reply",
}
STORED = {pair for pair in FORMS if not {"9002", "9003"} & set(pair)} | {("9001", "9002"), ("9001", "9003")}
"""Exact duplicates are links to the first post; pairs are those of the first posts."""


def petition(key: int, content: str) -> dict[str, object]:
    return {"id": key, "title": "", "content": content, "created_at": datetime(2024, 1, 1 + key % 10)}


@pytest.fixture
def posts(sqlite_petitions: Database) -> Database:
    with sqlite_petitions.engine.begin() as connection:
        connection.execute(insert(table), [petition(*each) for each in POSTS.items()])
    write_settings(sqlite_petitions, 'preset = "tweet"')
    succeed("upgrade")
    succeed("scan", "petitions")
    return sqlite_petitions


def forms(*arguments: str) -> dict[tuple[str, str], str]:
    pairs = succeed("pairs", "petitions", "--format", "json", *arguments).json()
    return {(p["key_a"], p["key_b"]): p["form"] for p in pairs if len(p["key_a"]) == 4}


def test_pairs_name_their_forms(posts: Database) -> None:
    assert forms() == {pair: FORMS[pair] for pair in STORED}
    assert forms("--expand") == FORMS
    header, *lines = succeed("pairs", "petitions", "--format", "csv", "--kinds").stdout.splitlines()
    assert header == "key_a,key_b,distance,similarity,kind,contained_key,other_place,form"
    assert "9001,9002,0,1.0,copy,,False,unofficial_retweet" in lines
    assert succeed("pairs", "petitions", "--format", "csv").stdout.splitlines()[0] == (
        "key_a,key_b,distance,similarity"
    )
    with posts.engine.connect() as connection:
        found = connection.execute(text(f"SELECT key_a, key_b, form FROM {view(posts, 'duplicate_pairs')}"))
        assert {(a, b): form for a, b, form in found if len(a) == 4} == forms()
    pairs = Deduplicator(posts.engine, table="petitions").pairs()
    assert {(p.key_a, p.key_b): p.form for p in pairs if len(p.key_a) == 4} == forms()


@pytest.mark.usefixtures("posts")
def test_a_check_names_the_form() -> None:
    record = json.dumps({"title": "", "content": f"“@name: {POST}"}, ensure_ascii=False)
    matches = run("check", "petitions", "--kinds", stdin=record).json()
    found = {match["row_key"]: match["form"] for match in matches}
    assert found == dict.fromkeys(map(str, POSTS), "unofficial_retweet") | {"9003": "official_retweet"}


def test_a_worker_writes_what_a_scan_writes(posts: Database) -> None:
    succeed("attach", "petitions")
    with posts.engine.begin() as connection:
        of = table.c.id
        # The text that is compared stays: only the form changes.
        connection.execute(update(table).where(of == 9001).values(content=f"via @a: {POST}"))
        connection.execute(update(table).where(of == 9003).values(content=POST))
        connection.execute(delete(table).where(of == 9004))
    succeed("worker", "petitions", "--drain")
    after = forms("--expand")
    assert after[("9001", "9003")] == after[("9001", "9005")] == "unofficial_retweet"
    assert after[("9003", "9005")] == "none"
    succeed("verify", "petitions")
    succeed("scan", "petitions")
    assert forms("--expand") == after


def test_a_table_without_posts_has_no_forms(posts: Database) -> None:
    write_settings(posts, 'preset = "balanced"')
    succeed("scan", "petitions")
    assert set(forms("--expand").values()) == {None}
