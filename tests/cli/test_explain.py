"""`explain` says in words what the explanation holds."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from sqlalchemy import update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as table
from db_dedup.errors import RecipeDiffersError, RowNotFoundError
from db_dedup.jobs.explain import columns as explained_columns
from db_dedup.records import DuplicatePair
from tests.cli.conftest import fail, succeed, write_settings
from tests.servers import Database


@pytest.fixture
def pair(scanned: Database) -> DuplicatePair:
    """A pair whose texts differ in some words."""
    pairs = Deduplicator(scanned.engine, "petitions").pairs()
    return next(pair for pair in pairs if pair.distance and pair.similarity and pair.similarity < 0.9)


def test_a_pair_is_told(pair: DuplicatePair) -> None:
    done = succeed("explain", "petitions", pair.key_a, pair.key_b)
    assert done.stderr == ""
    assert f"Rows {pair.key_a} and {pair.key_b}: a duplicate pair." in done.stdout
    assert f"simhash, radius: {pair.distance} of 64 bits differ, at most 3 may" in done.stdout
    assert re.search(r"passed  minhash bands: \d+ in common", done.stdout)
    assert re.search(r"(passed|failed)  passage hashes: \d+ in common", done.stdout)
    assert f"passed  char_overlap: {pair.similarity:.3f}, at least 0.57 needed" in done.stdout
    for measure in ("word_jaccard", "char_jaccard", "char_overlap", "overlap", "cosine"):
        assert re.search(rf"{measure} [01]\.\d{{3}}", done.stdout)
    assert f"Stored answer: a pair, distance {pair.distance}, similarity {pair.similarity:.3f}" in done.stdout
    assert "It agrees with the texts as they are now." in done.stdout
    assert "Groups: both are in group" in done.stdout
    shares = [float(bits) for bits in re.findall(r"│ ([\d.]+) of", done.stdout)]
    assert len(shares) == 2
    assert sum(shares) == pytest.approx(pair.distance, abs=0.11)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("full", [(), ("--full",)])
def test_the_table_fits_the_terminal(pair: DuplicatePair, width: int, full: tuple[str, ...]) -> None:
    done = succeed("explain", "petitions", pair.key_a, pair.key_b, *full, COLUMNS=str(width))
    lines = [line for line in done.stdout.splitlines() if line.startswith(("┏", "│", "└", "├"))]
    assert {cell_len(line) for line in lines} == {width}


def test_what_differs_is_marked_without_colours_too(pair: DuplicatePair) -> None:
    plain = succeed("explain", "petitions", pair.key_a, pair.key_b, COLUMNS="4000").stdout
    assert re.search(r"\[-|\{\+", plain)
    coloured = succeed("explain", "petitions", pair.key_a, pair.key_b, FORCE_COLOR="1").stdout
    assert re.search("\x1b\\[1;3[12]m", coloured)
    assert not re.search(r"\[-|\{\+", coloured)
    no_colour = succeed("explain", "petitions", pair.key_a, pair.key_b, FORCE_COLOR="1", NO_COLOR="1").stdout
    assert "[-" in no_colour or "{+" in no_colour


def test_the_json_has_stable_names(pair: DuplicatePair) -> None:
    found = succeed("explain", "petitions", pair.key_a, pair.key_b, "--json").json()
    assert found == succeed("explain", "petitions", pair.key_a, pair.key_b, DB_DEDUP_JSON="1").json()
    assert list(found) == [
        "table", "decision", "row_a", "row_b", "columns", "distance", "similarities", "generators", "tests",
        "stored", "agrees", "in_same_group", "is_abridged", "kind", "contained_key", "other_place",
        "differences",
    ]  # fmt: skip
    assert found["decision"] == "duplicate_pair"
    assert found["row_a"].keys() == {
        "row_key", "state", "fingerprint", "features", "within", "copy_of", "group_id"
    }  # fmt: skip
    assert [column["name"] for column in found["columns"]] == ["title", "content"]
    assert found["columns"][0].keys() == {
        "name", "kind", "weight", "value_a", "value_b", "text_a", "text_b", "tokens_a", "tokens_b",
        "left_out_a", "left_out_b", "differing_bits", "frames_a", "frames_b",
    }  # fmt: skip
    assert found["columns"][1]["tokens_a"][0].keys() == {"text", "mark"}
    simhash, bands, passages = found["generators"]
    assert simhash == {"name": "simhash", "passed": pair.distance <= 3, "value": pair.distance, "limit": 3}
    assert bands.keys() == simhash.keys()
    assert (bands["name"], bands["passed"]) == ("minhash bands", True)
    assert passages["name"] == "passage hashes"
    assert passages["limit"] >= 1
    assert passages["passed"] == (passages["value"] >= passages["limit"])
    assert [test["name"] for test in found["tests"]] == ["char_overlap"]
    assert found["stored"].keys() == {
        "kind", "distance", "similarity", "found_at", "pair_kind", "contained_key", "other_place"
    }  # fmt: skip
    assert (found["kind"], found["stored"]["pair_kind"]) == (pair.kind, pair.kind)
    assert found["similarities"].keys() == {
        "word_jaccard", "char_jaccard", "char_overlap", "overlap", "cosine"
    }  # fmt: skip


def test_why_rows_are_no_pair(scanned: Database, pair: DuplicatePair) -> None:
    grouped = {key for p in Deduplicator(scanned.engine, "petitions").pairs() for key in (p.key_a, p.key_b)}
    other = next(str(key) for key in range(1, 121) if str(key) not in grouped)
    said = succeed("explain", "petitions", pair.key_a, other).stdout
    assert "not a pair: no candidate generator proposes it (simhash, " in said
    assert ", passage hashes, grams of short texts), and char_overlap is below its limit." in said
    assert "failed  simhash, radius:" in said
    assert "Stored answer: no link between them. It agrees" in said
    with scanned.engine.begin() as connection:
        where = table.c.id == int(pair.key_b)
        connection.execute(update(table).where(where).values(title="", content="停水"))
    said = succeed("explain", "petitions", pair.key_a, pair.key_b).stdout
    assert f"too little text to judge: row {pair.key_b} has 1 feature." in said
    assert "It does not agree with the texts as they are now." in said
    assert f"Row {pair.key_b} has changed since it was last fingerprinted." in said
    assert "although they are no pair: other rows connect them" in said


def test_long_stretches_are_shortened_unless_asked_for(scanned: Database, pair: DuplicatePair) -> None:
    common = "。".join(f"第{i}个居民反映电梯停运" for i in range(40))
    with scanned.engine.begin() as connection:
        for key, end in ((pair.key_a, "请修"), (pair.key_b, "尽快")):
            connection.execute(update(table).where(table.c.id == int(key)).values(content=common + end))
    arguments = ("explain", "petitions", pair.key_a, pair.key_b)
    assert re.search(r"… \d+ tokens …", succeed(*arguments, COLUMNS="4000").stdout)
    assert "tokens …" not in succeed(*arguments, "--full").stdout
    assert succeed(*arguments, DB_DEDUP_FULL="1") == succeed(*arguments, "--full")


def test_of_texts_of_megabytes_the_places_that_differ_are_shown(
    scanned: Database, pair: DuplicatePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explained_columns, "MOST_TOKENS", 500)
    common = "。".join(f"第{i}个居民反映电梯停运" for i in range(300))
    with scanned.engine.begin() as connection:
        for key, middle in ((pair.key_a, "甲"), (pair.key_b, "乙")):
            content = f"{common}。{middle}。{common}"
            connection.execute(update(table).where(table.c.id == int(key)).values(content=content))
    arguments = ("explain", "petitions", pair.key_a, pair.key_b)
    plain = succeed(*arguments, COLUMNS="4000").stdout
    assert re.search(r"tokens … .{30,200}\[-甲-\].{30,200} … [\d,]+ tokens …", plain)
    content = succeed(*arguments, "--json").json()["columns"][1]
    left_out = content["left_out_a"]
    assert f"Column content is long: {left_out:,} and {left_out:,} tokens of the two texts are not" in plain
    counts = [int(re.sub(r"\D", "", t["text"])) for t in content["tokens_a"] if t["mark"] == "left_out"]
    assert sum(counts) == left_out > 1_000
    assert "tokens of the two texts are not shown" in succeed(*arguments, "--full").stdout


def test_texts_cannot_steer_the_terminal(scanned: Database, pair: DuplicatePair) -> None:
    with scanned.engine.begin() as connection:
        evil = "电梯\x1b[2J停运\u202e已经三天\x07 [bold]请修[/bold] [/x]"
        connection.execute(update(table).where(table.c.id == int(pair.key_a)).values(content=evil))
    explained = succeed("explain", "petitions", pair.key_a, pair.key_b).stdout
    paired = succeed("pairs", "petitions", "--texts", COLUMNS="4000").stdout
    for said in (explained, paired):
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", said)
    assert "[bold]请修[/bold] [/x]" in paired


def test_rows_and_settings_that_are_not_there(scanned: Database, pair: DuplicatePair) -> None:
    for keys in ((pair.key_a, "999999"), ("no-key", pair.key_a), (pair.key_a, "")):
        error = fail("explain", "petitions", *keys)
        assert isinstance(error, RowNotFoundError)
        assert error.exit_code == 1
        assert "is not there" in str(error)
    assert fail("explain", "petitions", pair.key_a, pair.key_a).exit_code == 2
    assert fail("explain", "petitions", pair.key_a, "--", "-5").exit_code == 1
    write_settings(scanned, "radius = 4")
    assert isinstance(fail("explain", "petitions", pair.key_a, pair.key_b), RecipeDiffersError)
