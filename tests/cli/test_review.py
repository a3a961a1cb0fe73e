"""Pairs and groups with the texts of their rows: to read, to export, to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, text, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as table
from db_dedup.present import texts as reading
from db_dedup.present.formulas import without_formula
from tests.cli.conftest import rows, succeed, write_settings
from tests.servers import Database

PAIR_HEADER = [
    "key_a", "key_b", "distance", "similarity", "a_title", "a_content", "b_title", "b_content",
    "is_gone_a", "is_gone_b",
]  # fmt: skip
KIND_HEADER = ["kind", "contained_key", "other_place", "form"]


@pytest.fixture(autouse=True)
def in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large tables are read: some rows at a time."""
    for name in ("_PAIRS_A_BATCH", "_ROWS_A_BATCH", "_GROUPS_A_BATCH"):
        monkeypatch.setattr(reading, name, 3)


def lines_of(*arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(succeed(*arguments).stdout, newline="")))


def stored_texts(database: Database) -> dict[str, tuple[str, str]]:
    return {str(k): (t, c) for k, t, c in rows(database.engine, "SELECT id, title, content FROM petitions")}


def put(database: Database, key: str, **values: Any) -> None:
    with database.engine.begin() as connection:
        connection.execute(update(table).where(table.c.id == int(key)).values(values))


def remove(database: Database, key: str) -> None:
    with database.engine.begin() as connection:
        connection.execute(delete(table).where(table.c.id == int(key)))


def test_pairs_carry_the_texts_in_every_database(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    texts = stored_texts(petitions)
    keys = succeed("pairs", "petitions", "--format", "json").json()
    for expand in ((), ("--expand",)):
        found = succeed("pairs", "petitions", *expand, "--format", "json", "--texts").json()
        assert len(found) >= len(keys)
        for pair in found:
            assert list(pair) == [*PAIR_HEADER, *KIND_HEADER, "differences"]
            assert (pair["a_title"], pair["a_content"]) == texts[pair["key_a"]]
            assert (pair["b_title"], pair["b_content"]) == texts[pair["key_b"]]
            assert (pair["is_gone_a"], pair["is_gone_b"]) == (False, False)
        plain = succeed("pairs", "petitions", *expand, "--format", "json").json()
        assert [{name: pair[name] for name in [*PAIR_HEADER[:4], *KIND_HEADER]} for pair in found] == plain
        limited = succeed("pairs", "petitions", *expand, "--format", "json", "--limit", "4").json()
        assert len(limited) == 4
        assert all(pair in plain for pair in limited)
    assert len(succeed("pairs", "petitions", "--limit", "2", "--format", "csv").stdout.splitlines()) == 3

    members = succeed("groups", "petitions", "--format", "json", "--texts").json()
    groups = succeed("groups", "petitions", "--format", "json").json()
    expected = [
        (group["group_id"], key)
        for group in groups
        for key in Deduplicator(petitions.engine, "petitions").members(group["group_id"])
    ]
    assert [(member["group_id"], member["row_key"]) for member in members] == expected
    assert all(m["is_representative"] == (m["row_key"] == m["group_id"]) for m in members)
    assert all((m["title"], m["content"]) == texts[m["row_key"]] for m in members)
    assert "And " in succeed("groups", "petitions", "--texts", "--members", "1").stdout


def test_without_texts_nothing_has_changed(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    csv_text = succeed("pairs", "petitions", "--format", "csv").stdout
    assert csv_text.splitlines()[0] == "key_a,key_b,distance,similarity"
    assert "key_a" in succeed("pairs", "petitions").stdout
    assert lines_of("groups", "petitions", "--format", "csv")[0].keys() == {
        "group_id", "size", "representative_key", "is_loose", "is_abridged"
    }  # fmt: skip


def test_a_csv_brings_back_every_character(scanned: Database) -> None:
    pair = lines_of("pairs", "petitions", "--format", "csv")[0]
    texts = ["停运\r尾", "-5\n\n\t行二\r"]
    for key, content in zip((pair["key_a"], pair["key_b"]), texts, strict=True):
        put(scanned, key, title='\ufeff =1,"@a"', content=content)
    found = lines_of("pairs", "petitions", "--format", "csv", "--texts")
    assert list(found[0]) == PAIR_HEADER
    assert [found[0]["a_content"], found[0]["b_content"]] == texts
    assert found[0]["a_title"] == '\ufeff =1,"@a"'
    assert len(found) == len(succeed("pairs", "petitions", "--format", "json").json())
    stored = stored_texts(scanned)
    for line in lines_of("groups", "petitions", "--format", "csv", "--texts"):
        title, content = stored[line["row_key"]]
        # The runner of the tests makes one line end of two.
        assert (line["title"], line["content"]) == (title, content.replace("\r\n", "\n"))


def test_a_spreadsheet_runs_nothing_and_knows_its_characters(scanned: Database) -> None:
    pair = lines_of("pairs", "petitions", "--format", "csv")[0]
    put(scanned, pair["key_a"], title='=HYPERLINK("http://x","电")', content=" \t@SUM(A1)")
    put(scanned, pair["key_b"], title="-12.5", content="＝1+1")
    for command in ("pairs", "groups"):
        text = succeed(command, "petitions", "--texts", "--format", "spreadsheet").stdout
        assert text.startswith("\ufeff")
        found = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
        cells = {cell for line in found for cell in line}
        assert {'\'=HYPERLINK("http://x","电")', "' \t@SUM(A1)", "-12.5", "'＝1+1"} <= cells
        assert not [cell for cell in cells if re.match(r"\s*[=+@＝]", cell)]


@pytest.mark.parametrize(
    "value", ["-5", "+8613800000000", "-0.25", "电梯", "", "a=b", "\n\ta", None, 3, True, 0.5]
)
def test_what_is_no_formula_stays(value: object) -> None:
    assert without_formula(value) is value


@pytest.mark.parametrize(
    "text", ["=1", "+a", "-1+1", "@x", "\t=1", "\r=1", "-", "+1-1", "－1", "-٣", "\ta", "\ra"]
)
def test_what_might_be_a_formula_is_made_a_text(text: str) -> None:
    assert without_formula(text) == f"'{text}"


def test_a_row_that_is_gone_is_shown_as_gone(scanned: Database) -> None:
    pair = lines_of("pairs", "petitions", "--format", "csv")[0]
    remove(scanned, pair["key_b"])
    found = lines_of("pairs", "petitions", "--format", "csv", "--texts")[0]
    assert (found["b_title"], found["is_gone_a"], found["is_gone_b"]) == ("", "False", "True")
    found = succeed("pairs", "petitions", "--format", "json", "--texts").json()[0]
    assert (found["b_title"], found["is_gone_b"]) == (None, True)
    members = succeed("groups", "petitions", "--format", "json", "--texts").json()
    (gone,) = [member for member in members if member["row_key"] == pair["key_b"]]
    assert (gone["title"], gone["is_gone"]) == (None, True)
    for command in ("pairs", "groups"):
        said = succeed(command, "petitions", "--texts", "--full", COLUMNS="4000").stdout
        assert "(gone since the last scan)" in said
    remove(scanned, pair["key_a"])
    for command in ("pairs", "groups"):
        assert "(gone since the last scan)" in succeed(command, "petitions", "--texts").stdout


def test_groups_are_blocks(scanned: Database) -> None:
    groups = succeed("groups", "petitions", "--format", "json").json()
    said = succeed("groups", "petitions", "--texts", "--members", "2", COLUMNS="4000").stdout
    assert said == succeed(
        "groups", "petitions", DB_DEDUP_TEXTS="1", DB_DEDUP_MEMBERS="2", COLUMNS="4000"
    ).stdout  # fmt: skip
    blocks = said.strip().split("\n\n")
    assert len(blocks) == len(groups)
    dedup = Deduplicator(scanned.engine, "petitions")
    for group, block in zip(groups, blocks, strict=True):
        assert block.startswith(f"Group {group['group_id']}: {group['size']} rows")
        assert f"row {group['group_id']} (representative)" in block
        representative, *others = dedup.members(group["group_id"])
        assert representative == group["group_id"]
        for key in others[:2]:
            assert re.search(rf"\b{key}\b", block)
        more = group["size"] - 3
        assert (f"And {more} more." in block) == (more > 0)
    first = succeed("groups", "petitions", "--texts", "--limit", "1", "--members", "2", COLUMNS="4000")
    assert first.stdout.strip() == blocks[0]


FIRST = "the street lamps in our lane have been dark for a month"
SECOND = "nobody has answered the three letters that we wrote to the office"
THIRD = "children come home from school in the dark and fall over the broken kerb"
FOURTH = "please repair the lamps before the winter holidays begin"
FIFTH = "the neighbours of the market square complain as well"
CHAIN = {
    "1": f"{FIRST}. {SECOND}.",
    "2": f"{SECOND}. {THIRD}. {FOURTH}.",
    "3": f"{THIRD}. {FOURTH}. {FIFTH}.",
    "4": f"{THIRD}. {FOURTH}. {FIFTH}.",
}


def test_in_a_loose_group_each_member_is_beside_the_row_that_it_resembles(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE letters (id INT PRIMARY KEY, body TEXT)"))
        for key, body in CHAIN.items():
            connection.execute(text("INSERT INTO letters VALUES (:k, :b)"), {"k": int(key), "b": body})
    dedup = Deduplicator(database.engine, "letters", {"body": 1}, threshold=0.5)
    dedup.upgrade()
    dedup.scan()
    [group] = dedup.groups()
    assert (group.size, group.is_loose) == (4, True)
    reader = dedup.texts()
    nearest = reader.nearest([*CHAIN])
    assert {key: row.row_key for key, row in nearest.items()} == {"1": "2", "2": "3", "3": "2", "4": "3"}
    assert reader.nearest(["9", ""]) == {}
    said = succeed("groups", "letters", "--url", database.url, "--texts", "--full", COLUMNS="500").stdout
    lines = [line.strip("┃│ ") for line in said.splitlines() if not line.startswith(("┏", "┡", "└"))]
    assert [re.split(r" *[┃│] *", line) for line in lines] == [
        ["Group 1: 4 rows, loose"],
        ["row 3", "row 2"],
        [
            "body",
            f"{THIRD}. {FOURTH}.[- {FIFTH}.-]",
            f"{{+{SECOND}. +}}{THIRD}. {FOURTH}.",
        ],
        ["Row 2 resembles row 3 most: 6 of 64 bits differ, similarity 0.714."],
        ["Row 3 resembles row 2 most: 6 of 64 bits differ, similarity 0.714."],
        ["Row 4 has the same text as row 3."],
        ["row 2", "row 1 (representative)"],
        ["body", f"{SECOND}.[- {THIRD}. {FOURTH}.-]", f"{{+{FIRST}. +}}{SECOND}."],
        ["Row 1 resembles row 2 most: 5 of 64 bits differ, similarity 0.621."],
        [""],
    ]


def test_equal_members_are_named_once(scanned: Database) -> None:
    group = succeed("groups", "petitions", "--format", "json").json()[0]
    representative, *others = Deduplicator(scanned.engine, "petitions").members(group["group_id"])
    for key in (representative, *others):
        put(scanned, key, title="电梯停运", content="请修 电梯" if key == representative else "请修\n电梯")
    said = succeed("groups", "petitions", "--texts", "--limit", "1", "--members", "1000").stdout
    assert f"The same text as the representative: {', '.join(others)}." in said
    assert said.count("┏") == 1


def test_pairs_stand_side_by_side(scanned: Database) -> None:
    pair = lines_of("pairs", "petitions", "--format", "csv")[0]
    common = "电梯停运三天请尽快修好" * 20
    put(scanned, pair["key_a"], title="甲", content=f"{common}老人{common}")
    put(scanned, pair["key_b"], title="乙", content=f"{common}孩子{common}")
    said = succeed("pairs", "petitions", "--texts", "--limit", "1", COLUMNS="4000").stdout
    assert f"row {pair['key_a']}" in said
    assert "[-甲-]" in said
    assert "{+乙+}" in said
    assert f"{pair['distance']} of 64 bits differ, similarity {float(pair['similarity']):.3f}" in said
    assert "… 160 characters …" in said
    full = succeed("pairs", "petitions", "--texts", "--limit", "1", "--full", COLUMNS="4000").stdout
    assert f"{common}[-老人-]{common}" in full


def test_a_column_that_is_called_as_one_of_ours(scanned: Database) -> None:
    with scanned.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE petitions RENAME COLUMN title TO row_key")
    write_settings(scanned)
    with scanned.engine.begin() as connection:
        connection.exec_driver_sql("DROP VIEW IF EXISTS dedup_duplicates_of_petitions")
    settings = Path("dedup.toml").read_text(encoding="utf-8").replace("title = 1", "row_key = 1")
    Path("dedup.toml").write_text(settings, encoding="utf-8")
    succeed("scan", "petitions")
    line = lines_of("groups", "petitions", "--texts", "--format", "csv")[0]
    assert list(line) == ["group_id", "row_key", "is_representative", "own_row_key", "content", "is_gone"]
    with scanned.engine.connect() as connection:
        query = select(table.c.content).where(table.c.id == int(line["row_key"]))
        assert connection.execute(query).scalar_one() == line["content"]


def test_nothing_found_is_nothing_shown(sqlite_petitions: Database) -> None:
    with sqlite_petitions.engine.begin() as connection:
        first = connection.execute(select(table)).mappings().first()
        connection.execute(delete(table))
        assert first is not None
        connection.execute(insert(table), [dict(first)])
    succeed("upgrade")
    succeed("scan", "petitions")
    assert succeed("pairs", "petitions", "--texts").stdout == ""
    assert succeed("groups", "petitions", "--texts").stdout == ""
    assert succeed("pairs", "petitions", "--texts", "--format", "json").stdout == "[]\n"
    header = succeed("pairs", "petitions", "--texts", "--format", "csv").stdout
    assert header == ",".join(PAIR_HEADER) + "\n"


def test_no_two_columns_of_an_export_of_groups_are_called_alike() -> None:
    header = reading.member_header(["group_id", "own_group_id", "Row_Key", "title"], with_differences=True)
    assert header[3:-2] == ["own_own_group_id", "own_group_id", "own_Row_Key", "title"]
    assert len({name.casefold() for name in header}) == len(header)
