"""`pairs --expand` writes out what the copies and abridged groups imply."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path

import pytest
from sqlalchemy import insert

from db_dedup.cli.demo import petitions as table
from db_dedup.engines.embedded import expansion
from db_dedup.flow.text.normalise import normalise_batch
from tests.cli.conftest import rows, succeed, view, write_settings
from tests.servers import Database

BASE = (
    "我是红星小区居民，楼下饭店油烟直排楼道，每天晚上十一点以后还在营业，噪音很大，"
    "孩子无法休息，老人血压升高，多次向物业和社区反映都没有结果，请有关部门尽快处理并答复"
)
ENDINGS = ("", "。谢谢", "，盼复", "，特此反映", "。急", "，请领导关注")
FIRST = datetime(2024, 1, 1)


@pytest.fixture
def families(petitions: Database) -> Database:
    """More petitions: a chain of near-equal texts, some of them several times, received in a mixed order."""
    texts = [BASE + ending for ending in ENDINGS] + [BASE] * 3 + [BASE + ENDINGS[1]] * 2
    with petitions.engine.begin() as connection:
        new = [
            {
                "id": 1000 + i,
                "title": "油烟扰民",
                "content": content,
                "created_at": FIRST + timedelta(days=i * 7 % 5),
            }
            for i, content in enumerate(texts)
        ]
        connection.execute(insert(table), new)
    succeed("upgrade")
    return petitions


def scan(database: Database, abridge_above: int) -> list[tuple[str, ...]]:
    """Scan with this limit; give the expanded pairs, sorted."""
    write_settings(database, f"abridge_above = {abridge_above}")
    succeed("scan", "petitions")
    lines = succeed("pairs", "petitions", "--expand", "--format", "csv").stdout.splitlines()
    assert lines[0] == "key_a,key_b,distance,similarity"
    return sorted(tuple(line.split(",")) for line in lines[1:])


def test_expand_gives_every_pair_of_equal_or_paired_classes(
    families: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = scan(families, 1000)
    assert {(a, b) for a, b, *_ in found} == implied_pairs(families)
    assert len(found) == len({frozenset(pair[:2]) for pair in found})
    assert len(found) > len(rows(families.engine, f"SELECT key_a FROM {view(families, 'duplicate_pairs')}"))

    # Parts that end within the pairs of two classes, or of one, give the same.
    monkeypatch.setattr(expansion, "_PAIRS_A_PART", 2)
    assert scan(families, 1000) == found

    # In an abridged group most pairs are not stored, and are found again all the same.
    assert scan(families, 3) == found
    flags = rows(families.engine, f"SELECT is_abridged FROM {view(families, 'duplicate_groups')}")
    assert any(flag for (flag,) in flags)
    assert implied_pairs(families) < {(a, b) for a, b, *_ in found}


def implied_pairs(database: Database) -> set[tuple[str, str]]:
    """Every pair of rows whose copy classes are equal or paired in the view; the earlier row first."""
    stored = rows(database.engine, f"SELECT key_a, key_b FROM {view(database, 'duplicate_pairs')}")
    texts = {str(i): t for i, *t in rows(database.engine, "SELECT id, title, content FROM petitions")}
    received = {
        str(i): (when, i) for i, when in rows(database.engine, "SELECT id, created_at FROM petitions")
    }
    texts = {key: normalise_batch(columns) for key, columns in texts.items()}
    first = {b: a for a, b in stored if texts[a] == texts[b]}
    keys = {key for a, b in stored for key in (a, b)}
    joined = {frozenset((first.get(a, a), first.get(b, b))) for a, b in stored}
    in_order = sorted(keys, key=lambda key: received[key])
    return {
        (a, b)
        for a, b in combinations(in_order, 2)
        if frozenset((first.get(a, a), first.get(b, b))) in joined
    }


def test_nothing_found_is_an_empty_answer_in_every_format(sqlite_petitions: Database) -> None:
    with sqlite_petitions.engine.begin() as connection:
        connection.execute(table.delete())
    succeed("upgrade")
    succeed("scan", "petitions")
    for expand in ((), ("--expand",)):
        assert succeed("pairs", "petitions", "--format", "json", *expand).stdout == "[]\n"
        header = succeed("pairs", "petitions", "--format", "csv", *expand).stdout
        assert header == "key_a,key_b,distance,similarity\n"
        assert "key_a" in succeed("pairs", "petitions", *expand).stdout


def test_the_environment_chooses_like_the_flags(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    by_flag = succeed("pairs", "petitions", "--expand", "--format", "csv")
    assert succeed("pairs", "petitions", DB_DEDUP_EXPAND="1", DB_DEDUP_FORMAT="csv") == by_flag
    assert succeed("pairs", "petitions", "--format", "csv", DB_DEDUP_FORMAT="json").stdout.startswith("key_a")


def test_without_a_similarity_none_is_shown(sqlite_petitions: Database) -> None:
    write_settings(sqlite_petitions, 'preset = "strict"')
    succeed("upgrade")
    succeed("scan", "petitions")
    assert any(p["similarity"] is None for p in succeed("pairs", "petitions", "--format", "json").json())
    lines = succeed("pairs", "petitions", "--format", "csv").stdout.splitlines()
    assert any(line.endswith(",") for line in lines[1:])
    assert "None" not in succeed("pairs", "petitions").stdout
    assert Path("dedup.toml").exists()


def test_a_history_without_changes_is_told_in_words(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    told = succeed("history", "petitions")
    assert (told.stdout, told.stderr) == ("", "petitions: no changes of the ids of groups are stored\n")
    assert succeed("history", "petitions", "--json").json() == []
