"""`check`: is this text a duplicate?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, insert, select, text

from db_dedup.cli.demo import petitions as table
from tests.cli.conftest import fail, rows, run, succeed, write_settings
from tests.servers import Database


def record(engine: Engine, key: str) -> str:
    """A stored petition as `check` takes it."""
    with engine.connect() as connection:
        row = connection.execute(select(table.c.title, table.c.content).where(table.c.id == int(key))).one()
    return json.dumps(row._asdict(), ensure_ascii=False)


def test_a_stored_row_finds_its_copies_and_pairs(petitions: Database) -> None:
    copied = 2
    with petitions.engine.begin() as connection:
        row = connection.execute(select(table).where(table.c.id == copied)).mappings().one()
        connection.execute(insert(table), [{**row, "id": 9001}, {**row, "id": 9002}])
    succeed("upgrade")
    succeed("scan", "petitions")
    pairs = succeed("pairs", "petitions", "--expand", "--format", "json").json()
    groups = succeed("groups", "petitions", "--format", "json").json()
    assert groups
    for key in ("2", pairs[-1]["key_a"]):
        expected = {
            p["key_b"] if p["key_a"] == key else p["key_a"] for p in pairs if key in (p["key_a"], p["key_b"])
        }
        found = succeed("check", "petitions", stdin=record(petitions.engine, key)).json()
        assert {match["row_key"] for match in found} == expected | {key}
        order = [(match["distance"], -match["similarity"]) for match in found]
        assert order == sorted(order)
        assert {"row_key", "distance", "similarity", "group_id"} == set(found[0])
        assert {match["group_id"] for match in found} <= {group["group_id"] for group in groups}
    equal = succeed("check", "petitions", stdin=record(petitions.engine, "2")).json()
    assert {match["row_key"] for match in equal if match["distance"] == 0} >= {"2", "9001", "9002"}


def test_nothing_found_is_an_empty_list(scanned: Database) -> None:
    assert rows(scanned.engine, "SELECT count(*) FROM petitions") == [(120,)]
    stranger = {"content": "今天天气晴朗，公园里的樱花开得正好，游客络绎不绝，孩子们放着风筝奔跑欢笑"}
    result = succeed("check", "petitions", stdin=json.dumps(stranger))
    assert (result.stdout, result.stderr) == ("[]\n", "")


@pytest.mark.parametrize("content", ["", "急", None, "？！……", 7])
def test_too_little_text_is_said_on_stderr(scanned: Database, content: object) -> None:
    assert scanned.name == "sqlite"
    result = succeed("check", "petitions", stdin=json.dumps({"content": content}))
    assert result.stdout == "[]\n"
    assert result.stderr == "too little text to judge\n"


@pytest.mark.parametrize(
    "stdin",
    [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b'{"id": ' + b"9" * 5000 + b"}"],
    ids=["nothing", "broken", "a list", "a string", "no UTF-8", "a huge number"],
)
def test_what_is_no_json_object_is_refused(scanned: Database, stdin: bytes) -> None:
    assert scanned.name == "sqlite"
    error = fail("check", "petitions", stdin=stdin)
    assert error.exit_code == 2
    assert str(error).startswith(("stdin is no JSON object", "stdin is not UTF-8"))


def test_an_unknown_column_is_answered_with_the_nearest(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    error = fail("check", "petitions", stdin='{"contents": "x"}')
    assert error.exit_code == 2
    assert "'contents'" in str(error)
    assert "did you mean content" in str(error)


def test_a_byte_order_mark_and_odd_values_do_no_harm(scanned: Database) -> None:
    plain = json.loads(record(scanned.engine, "1"))
    odd = {**plain, "id": 1e300, "region": ["a", None], "phone": {"x": True}, "created_at": "never"}
    found = run("check", "petitions", stdin=b"\xef\xbb\xbf" + json.dumps(odd).encode())
    assert found.json()[0]["row_key"] == "1"
    assert succeed("check", "petitions", stdin='{"content": "\\ud800 \\u0000"}').json() == []


def test_a_check_writes_nothing(scanned: Database) -> None:
    with scanned.engine.connect() as connection:
        before = connection.connection.driver_connection.iterdump()  # type: ignore[union-attr]
        dump = list(before)
        succeed("check", "petitions", stdin=record(scanned.engine, "1"))
        assert list(connection.connection.driver_connection.iterdump()) == dump  # type: ignore[union-attr]


@pytest.mark.parametrize("setting", ["radius = 5", 'preset = "strict"', 'user_words = ["信访"]'])
def test_a_file_that_differs_asks_for_a_scan(scanned: Database, setting: str) -> None:
    one = record(scanned.engine, "1")
    write_settings(scanned, setting)
    error = fail("check", "petitions", stdin=one)
    assert error.exit_code == 1
    assert "db-dedup scan petitions" in str(error)
    # The answer that stands can be read all the same.
    assert succeed("groups", "petitions").stdout
    assert succeed("pairs", "petitions", "--expand").stdout
    succeed("scan", "petitions")
    assert succeed("check", "petitions", stdin=one).json()


def test_without_a_file_the_stored_recipe_judges(scanned: Database) -> None:
    one = record(scanned.engine, "1")
    with_file = succeed("check", "petitions", stdin=one)
    Path("dedup.toml").unlink()
    assert succeed("check", "petitions", "--url", scanned.url, stdin=one) == with_file
    with scanned.engine.begin() as connection:
        connection.execute(text("DELETE FROM petitions WHERE id = 1"))
    left = succeed("check", "petitions", stdin=one, DB_DEDUP_URL=scanned.url)
    assert left.json()[0]["distance"] == 0  # until the next scan the stored answer counts
