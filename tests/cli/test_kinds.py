"""Kinds of pairs on the command line, and `exclude_kinds` in every place that decides."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import insert, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as table
from tests.cli.conftest import rows, run, succeed, view, write_settings
from tests.servers import Database

TEXT = (
    "尊敬的领导：我是红星小区的居民，楼下的烧烤店每天晚上营业到凌晨两点，油烟直接排到楼道里，"
    "噪音也很大，孩子无法休息，老人血压升高。我们多次向物业和社区反映，都没有结果。联系人：王小明。"
)
MORE = (
    "另外，门口的路灯已经坏了三个月，晚上出行很不安全，前几天还有一位阿姨摔伤了手臂。"
    "停车位也被外来车辆长期占用，业主下班回家只能把车停在很远的地方，希望一并处理。"
)
CONTENTS = {
    9001: TEXT,
    9002: TEXT.replace("红星小区", "锦湖小区").replace("王小明", "李大海"),
    9003: TEXT + MORE,
    9004: TEXT,
}
HEADER = "key_a,key_b,distance,similarity"


def petition(key: int, content: str) -> dict[str, object]:
    return {"id": key, "title": "", "content": content, "created_at": datetime(2024, 1, 1 + key % 10)}


@pytest.fixture
def letters_anywhere(petitions: Database) -> Database:
    with petitions.engine.begin() as connection:
        connection.execute(insert(table), [petition(*each) for each in CONTENTS.items()])
    succeed("upgrade")
    return petitions


@pytest.fixture
def letters(sqlite_petitions: Database) -> Database:
    with sqlite_petitions.engine.begin() as connection:
        connection.execute(insert(table), [petition(*each) for each in CONTENTS.items()])
    succeed("upgrade")
    return sqlite_petitions


def found(*arguments: str) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The pairs of our letters by their keys: kind, contained key and flag."""
    pairs = succeed("pairs", "petitions", "--format", "json", *arguments).json()
    return {
        (pair["key_a"], pair["key_b"]): (pair["kind"], pair["contained_key"], pair["other_place"])
        for pair in pairs
        if len(pair["key_a"]) == 4
    }


EXPECTED = {
    ("9001", "9002"): ("edited", None, True),
    ("9001", "9003"): ("contained", "9001", False),
    ("9002", "9003"): ("contained", "9002", True),
    ("9001", "9004"): ("copy", None, False),
}


def test_pairs_have_kinds_in_every_database(letters_anywhere: Database) -> None:
    letters = letters_anywhere
    succeed("scan", "petitions")
    assert found() == EXPECTED
    expanded = found("--expand")
    assert expanded == {
        **EXPECTED,
        ("9002", "9004"): ("edited", None, True),
        ("9003", "9004"): ("contained", "9004", False),
    }
    for chosen, kinds in (("edited", {"edited"}), ("copy, contained", {"copy", "contained"})):
        for options, every in (((), EXPECTED), (("--expand",), expanded)):
            wanted = {keys: values for keys, values in every.items() if values[0] in kinds}
            assert found("--kind", chosen, *options) == wanted
    for option, flag in (("--other-place", True), ("--no-other-place", False)):
        assert found(option) == {keys: values for keys, values in EXPECTED.items() if values[2] is flag}
    stored = rows(
        letters.engine,
        f"SELECT key_a, key_b, kind, contained_key, other_place FROM {view(letters, 'duplicate_pairs')}"
        " WHERE LENGTH(key_a) = 4",
    )
    assert {(a, b): (kind, part, bool(flag)) for a, b, kind, part, flag in stored} == EXPECTED
    assert succeed("verify", "petitions").exit_code == 0


@pytest.mark.usefixtures("letters")
def test_the_csv_keeps_its_columns() -> None:
    succeed("scan", "petitions")
    assert succeed("pairs", "petitions", "--format", "csv").stdout.splitlines()[0] == HEADER
    lines = succeed("pairs", "petitions", "--format", "csv", "--kinds").stdout.splitlines()
    assert lines[0] == f"{HEADER},kind,contained_key,other_place,form"
    assert any(line.startswith("9001,9003,") and line.endswith(",contained,9001,False,") for line in lines)
    texts = succeed("pairs", "petitions", "--format", "csv", "--kinds", "--texts").stdout.splitlines()
    assert texts[0].endswith(",is_gone_a,is_gone_b,kind,contained_key,other_place,form")


@pytest.mark.usefixtures("letters")
def test_a_wrong_kind_is_refused() -> None:
    succeed("scan", "petitions")
    refused = run("pairs", "petitions", "--kind", "copies")
    assert "there is no kind of pair 'copies': choose from copy, edited, contained, partial" in str(
        refused.error
    )


@pytest.mark.usefixtures("letters")
def test_check_keeps_its_four_names() -> None:
    succeed("scan", "petitions")
    record = json.dumps({"title": "", "content": CONTENTS[9002][:-20]})
    four = succeed("check", "petitions", stdin=record).json()
    assert all(list(match) == ["row_key", "distance", "similarity", "group_id"] for match in four)
    with_kinds = succeed("check", "petitions", "--kinds", stdin=record).json()
    assert [{name: match[name] for name in four[0]} for match in with_kinds] == four
    kinds = {match["row_key"]: (match["kind"], match["other_place"]) for match in with_kinds}
    assert kinds["9002"] == ("edited", False)
    assert kinds["9001"] == kinds["9004"] == ("edited", True)


def test_what_contains_what_in_a_check(letters: Database) -> None:
    succeed("scan", "petitions")
    dedup = Deduplicator(letters.engine, "petitions")
    longer = {m.row_key: m for m in dedup.check({"title": "", "content": TEXT + MORE + "请尽快处理"})}
    assert (longer["9001"].kind, longer["9001"].contained_key) == ("contained", "9001")
    shorter = {m.row_key: m for m in dedup.check({"title": "", "content": MORE})}
    assert (shorter["9003"].kind, shorter["9003"].contained_key) == ("contained", None)


@pytest.mark.usefixtures("letters")
def test_explain_and_groups_name_what_differs() -> None:
    succeed("scan", "petitions")
    said = succeed("explain", "petitions", "9001", "9002").stdout
    assert "Kind: edited, the same text with changes; each names a place or organisation" in said
    assert "Only in row 9001: places 红星小区" in said
    assert "Only in row 9002: places 锦湖小区" in said
    assert "Only in row 9002: people 李大海" in said
    assert "It agrees with the texts as they are now" in said
    explained = succeed("explain", "petitions", "9003", "9004", "--json").json()
    assert (explained["kind"], explained["contained_key"]) == ("contained", "9004")
    assert explained["stored"]["contained_key"] == "9004"
    assert explained["agrees"]
    texts = succeed("groups", "petitions", "--texts").stdout
    assert "Only in row 9002: places 锦湖小区" in texts
    members = succeed("groups", "petitions", "--texts", "--format", "json").json()
    (other,) = [member for member in members if member["row_key"] == "9002"]
    assert other["differences"]["places"] == {"only_a": ["红星小区"], "only_b": ["锦湖小区"]}


def test_a_stored_kind_that_is_no_longer_right(letters: Database) -> None:
    succeed("scan", "petitions")
    pair = Deduplicator(letters.engine, "petitions").database.tables.pair
    with letters.engine.begin() as connection:
        connection.execute(update(pair).values(kind=3, contained_id=None))
    assert "It does not agree with the texts" in succeed("explain", "petitions", "9001", "9002").stdout
    assert "('9001', '9002'" in str(sorted(found()))
    assert run("verify", "petitions").exit_code == 1
    succeed("scan", "petitions")
    assert found() == EXPECTED


def test_excluded_kinds_are_left_out_everywhere(letters_anywhere: Database) -> None:
    letters = letters_anywhere
    write_settings(letters, 'exclude_kinds = ["contained"]')
    succeed("scan", "petitions")
    wanted = {keys: values for keys, values in EXPECTED.items() if values[0] != "contained"}
    assert found() == wanted
    assert found("--expand") == {**wanted, ("9002", "9004"): ("edited", None, True)}
    groups = succeed("groups", "petitions", "--format", "json").json()
    (group,) = [group for group in groups if group["group_id"] == "9001"]
    assert group["size"] == 3, "a pair that is left out joins no rows"
    said = succeed("explain", "petitions", "9001", "9003").stdout
    assert "not a pair: pairs of this kind are left out (exclude_kinds)" in said
    assert "Kind: contained, row 9001 is part of the other" in said
    assert "It agrees" in said
    record = json.dumps({"title": "", "content": TEXT + MORE})
    matches = succeed("check", "petitions", "--kinds", stdin=record).json()
    assert {match["row_key"] for match in matches} == {"9003"}
    assert succeed("verify", "petitions").exit_code == 0

    dedup = Deduplicator(letters.engine, "petitions")
    succeed("attach", "petitions")
    succeed("worker", "petitions", "--drain")
    with letters.engine.begin() as connection:
        connection.execute(insert(table), [petition(9005, TEXT + MORE + "谢谢")])
    with letters.engine.begin() as connection:  # while it is queued
        queued = dedup.check({"title": "", "content": TEXT}, connection, block=True)
        assert {match.row_key for match in queued} == {"9001", "9002", "9004"}
    succeed("worker", "petitions", "--drain")
    assert set(found()) == {*wanted, ("9003", "9005")}
    assert succeed("verify", "petitions").exit_code == 0


def test_pairs_that_name_other_places_are_left_out_everywhere(letters: Database) -> None:
    write_settings(letters, 'exclude_kinds = ["other_place"]')
    succeed("scan", "petitions")
    wanted = {keys: values for keys, values in EXPECTED.items() if not values[2]}
    assert len(wanted) < len(EXPECTED)
    assert found() == wanted
    said = succeed("explain", "petitions", "9001", "9002").stdout
    assert "not a pair: pairs of this kind are left out (exclude_kinds)" in said
    record = json.dumps({"title": "", "content": TEXT})
    matches = succeed("check", "petitions", stdin=record).json()
    assert "9002" not in {match["row_key"] for match in matches}
    succeed("attach", "petitions")
    succeed("worker", "petitions", "--drain")
    with letters.engine.begin() as connection:
        connection.execute(insert(table), [petition(9005, TEXT + "谢谢")])
    succeed("worker", "petitions", "--drain")
    assert ("9001", "9005") in found()
    assert ("9002", "9005") not in found()
    assert succeed("verify", "petitions").exit_code == 0


def test_a_change_of_the_kinds_keeps_the_fingerprints(letters: Database) -> None:
    succeed("scan", "petitions")
    before = rows(letters.engine, f"SELECT recipe FROM {view(letters, 'fingerprint')}")
    write_settings(letters, 'exclude_kinds = ["contained", "edited"]')
    assert "segmented" not in succeed("scan", "petitions").stdout
    assert rows(letters.engine, f"SELECT recipe FROM {view(letters, 'fingerprint')}") == before
    assert set(found()) == {("9001", "9004")}


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ('exclude_kinds = ["copy"]', '"edited" or "contained" or "partial" or "other_place"'),
        ('exclude_kinds = "edited"', "exclude_kinds"),
        ('preset = "strict"\nexclude_kinds = ["edited"]', "exclude_kinds needs a similarity measure"),
    ],
)
def test_settings_that_cannot_be(letters: Database, settings: str, fault: str) -> None:
    write_settings(letters, settings)
    assert fault in str(run("scan", "petitions").error)


def test_strict_has_no_kinds(letters: Database) -> None:
    write_settings(letters, 'preset = "strict"\nradius = 11')
    succeed("scan", "petitions")
    kinds = set(found().values())
    assert kinds == {(None, None, None), ("copy", None, False)}
    assert "Kind:" not in succeed("explain", "petitions", "9001", "9002").stdout
