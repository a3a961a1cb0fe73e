"""What a preview announces is what the scan then does, and it writes nothing itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, inspect, select, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.records import AnswerDifferences, Difference
from db_dedup.sample import Sample
from tests.bands import canonical_sketches
from tests.cli.conftest import fail, succeed
from tests.interrupted.conftest import Answer, by_settings, change_recipe, dump
from tests.scan.conftest import answer
from tests.servers import Database
from tests.thorough import quick_first

OTHER_SETTINGS = {
    "the rule": 'radius = 11\nsketches = false\nsimilarity = "word_jaccard"\nthreshold = 0.6',
    "the threshold": "threshold = 0.8",
    "the fingerprints": 'term_frequency = "set"\nsegmenter = "chars:2"',
    "the limit of groups": "abridge_above = 3",
    "nothing": "",
}


def edit(database: Database, sample: Sample) -> None:
    """Rows that go, come, become copies and change otherwise."""
    ids = sorted(p.id for p in sample.petitions)
    table = petitions_table
    with database.engine.begin() as connection:
        rows = {row["id"]: dict(row) for row in connection.execute(select(table)).mappings()}
        connection.execute(delete(table).where(table.c.id.in_(ids[::11])))
        connection.execute(insert(table), [rows[i] | {"id": 10_000 + i} for i in ids[3::9]])
        for a, b in zip(ids[4::13], ids[5::13], strict=False):
            same = {"title": rows[a]["title"], "content": rows[a]["content"]}
            connection.execute(update(table).where(table.c.id == b).values(**same))
        connection.execute(update(table).where(table.c.id == ids[6]).values(content="换成了别的内容"))


def test_a_dry_run_needs_no_tables_of_ours(petitions: Database) -> None:
    before = inspect(petitions.engine).get_table_names()
    found = succeed("scan", "petitions", "--dry-run", "--json").json()
    assert inspect(petitions.engine).get_table_names() == before
    assert "dedup" not in inspect(petitions.engine).get_schema_names()
    assert (found["differences"], found["is_new_recipe"]) == (None, True)
    succeed("upgrade")
    report = succeed("scan", "petitions", "--json").json()
    for name in ("rows", "pairs", "copies", "groups", "largest_group"):
        assert found["report"][name] == report[name]


@pytest.mark.parametrize("settings", quick_first(OTHER_SETTINGS))
def test_a_preview_tells_what_the_scan_changes(petitions: Database, sample: Sample, settings: str) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    before = answer(dedup)
    if settings != "the limit of groups":  # what an abridged group keeps of its pairs depends on its history
        edit(petitions, sample)
    changed = change_recipe(petitions, OTHER_SETTINGS[settings])
    stored = dump(dedup, volatile=True)
    found = changed.preview()
    assert dump(dedup, volatile=True) == stored
    assert answer(dedup) == before
    report = changed.scan()
    assert found.differences is not None
    assert counts(found.differences) == changes(before, answer(changed))
    for difference in vars(found.differences).values():
        assert len(difference.samples) == min(difference.count, 10)
    assert_samples_are_true(found.differences, before, answer(changed))
    assert found.is_new_recipe == (settings in ("the rule", "the fingerprints"))
    if found.is_new_recipe:
        announced = found.differences
        assert report.pairs_gained == announced.pairs_gained.count
        assert report.pairs_lost == announced.pairs_lost.count
        assert report.groups_changed == announced.groups_changed.count
    for name in ("rows", "fingerprints", "too_little_text", "copies", "pairs", "groups", "grouped_rows"):
        assert getattr(found.report, name) == getattr(report, name)
    assert changed.preview().differences == AnswerDifferences(*[Difference(0, ())] * 8)


def test_a_new_recipe_with_the_same_answer_changes_nothing(petitions: Database) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    first = dedup.scan()
    assert first.pairs_gained == first.pairs + first.copies
    changed = change_recipe(petitions, "min_features = 2")
    assert changed.preview().is_new_recipe
    report = changed.scan()
    assert (report.pairs, report.copies) == (first.pairs, first.copies)
    assert (report.pairs_gained, report.pairs_lost, report.groups_changed) == (0, 0, 0)


def test_a_new_recipe_for_an_emptied_table_loses_everything(sqlite_petitions: Database) -> None:
    dedup = by_settings(sqlite_petitions)
    dedup.upgrade()
    first = dedup.scan()
    with sqlite_petitions.engine.begin() as connection:
        connection.execute(delete(petitions_table))
    report = change_recipe(sqlite_petitions, "min_features = 2").scan()
    assert (report.pairs_gained, report.pairs_lost) == (0, first.pairs + first.copies)
    assert report.groups_changed == first.groups


def counts(found: AnswerDifferences) -> dict[str, int]:
    return {name: difference.count for name, difference in vars(found).items()}


def changes(before: Answer, after: Answer) -> dict[str, int]:
    """The same from what the views said, and say now."""
    old_pairs, new_pairs = (pairs_of(found) for found in (before, after))
    both = old_pairs.keys() & new_pairs.keys()
    old, new = (partition(found) for found in (before, after))
    old_flags, new_flags = ({g.group_id: g for g in found[1]} for found in (before, after))
    in_both = old.keys() & new.keys()
    same = {key for key in in_both if (old[key], old_flags[key]) == (new[key], new_flags[key])}
    return {
        "pairs_gained": len(new_pairs.keys() - both),
        "pairs_lost": len(old_pairs.keys() - both),
        "pairs_changed": sum(old_pairs[key] != new_pairs[key] for key in both),
        "groups_gained": len(fallen_apart(new, old)),
        "groups_lost": len(fallen_apart(old, new)),
        "groups_merged": len(divided(new, old)),
        "groups_split": len(divided(old, new)),
        "groups_changed": len((old.keys() | new.keys()) - same),
    }


def pairs_of(found: Answer) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {(p.key_a, p.key_b): (p.distance, p.similarity) for p in found[0]}


def partition(found: Answer) -> dict[str, frozenset[str]]:
    return {group: frozenset(members) for group, members in found[2]}


def fallen_apart(groups: dict[str, frozenset[str]], others: dict[str, frozenset[str]]) -> set[str]:
    """Groups none of whose rows is in a group of the others."""
    grouped = {row for members in others.values() for row in members}
    return {group for group, members in groups.items() if not members & grouped}


def divided(groups: dict[str, frozenset[str]], others: dict[str, frozenset[str]]) -> set[str]:
    """Groups whose rows the others have in several groups, or in a group and in none."""
    group_of = {row: group for group, members in others.items() for row in members}
    parts = {group: {group_of.get(row, row + " alone") for row in rows} for group, rows in groups.items()}
    return {group for group, found in parts.items() if len(found) > 1} - fallen_apart(groups, others)


def assert_samples_are_true(found: AnswerDifferences, before: Answer, after: Answer) -> None:
    old, new = pairs_of(before), pairs_of(after)
    assert {(p.key_a, p.key_b) for p in found.pairs_gained.samples} <= new.keys() - old.keys()
    assert {(p.key_a, p.key_b) for p in found.pairs_lost.samples} <= old.keys() - new.keys()
    for pair in (*found.pairs_gained.samples, *found.pairs_changed.samples):
        assert new[pair.key_a, pair.key_b] == (pair.distance, pair.similarity)
    assert {*found.groups_merged.samples, *found.groups_gained.samples} <= partition(after).keys()
    assert {*found.groups_split.samples, *found.groups_lost.samples} <= partition(before).keys()


def test_a_dry_run_writes_nothing_of_a_table_that_was_never_scanned(petitions: Database) -> None:
    succeed("upgrade")
    dedup = by_settings(petitions)
    with petitions.engine.begin() as connection:  # copies, which count once
        row = dict(connection.execute(select(petitions_table).limit(1)).mappings().one())
        connection.execute(insert(petitions_table), [row | {"id": 20_000 + i} for i in range(30)])
    nothing = dump(dedup, volatile=True)
    assert not any(nothing.values())
    told = succeed("scan", "petitions", "--dry-run", "--json")
    found = told.json()
    assert dump(dedup, volatile=True) == nothing
    assert "nothing was written" in told.stderr
    assert found["differences"] is None
    assert found["report"]["rows"] == found["report"]["segmented"] == 120
    assert found["report"]["seconds"] >= found["matching_seconds"] >= 0
    report = succeed("scan", "petitions", "--json").json()
    for name in ("rows", "fingerprints", "copies", "pairs", "groups"):
        assert found["report"][name] == report[name]
    assert {name: found["costs"][name] for name in _WRITTEN} == {
        name: row_count(dedup, table) for name, table in _WRITTEN.items()
    }
    assert found["costs"]["entries"] == sum(sketch.size for sketch in canonical_sketches(dedup).values())
    assert [(h["block"], h["rows"]) for h in found["hottest_blocks"]] == hottest(dedup)


def test_a_dry_run_prints_no_empty_table(petitions: Database) -> None:
    assert petitions.name
    assert "block" in succeed("scan", "petitions", "--dry-run").stdout
    file = Path("dedup.toml")
    too_little = "[tables.petitions]\nmin_features = 100000\n"
    file.write_text(file.read_text().replace("[tables.petitions]\n", too_little))
    told = succeed("scan", "petitions", "--dry-run")
    assert told.stdout == ""
    assert "nothing was written" in told.stderr


_WRITTEN = {"fingerprints": "fingerprint", "pairs": "pair"}


def row_count(dedup: Deduplicator, table: str) -> int:
    with dedup.database.engine.connect() as connection:
        query = select(func.count()).select_from(getattr(dedup.database.tables, table))
        return connection.execute(query).scalar_one()


def test_a_rescan_costs_what_has_changed(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    with petitions.engine.begin() as connection:
        row = dict(connection.execute(select(petitions_table).limit(1)).mappings().one())
        changed = {
            "id": 20_000,
            "title": "the lift",
            "content": "the lift of our house is out of order",
        }
        connection.execute(insert(petitions_table), [row | changed])
    costs = succeed("scan", "petitions", "--dry-run", "--json").json()["costs"]
    assert costs["fingerprints"] == 1
    assert costs["pairs"] == 0
    assert 0 < costs["bytes"] < 20_000
    alter = [sentence for sentence in costs["locks"] if "ALTER TABLE" in sentence]
    assert len(alter) == (petitions.name != "sqlite")


def hottest(dedup: Deduplicator) -> list[tuple[int, int]]:
    """(block, rows) of the five block values that most rows have, as the stored columns say."""
    table = dedup.database.tables.fingerprint
    columns = [table.c[f"block_{i}"] for i in range(1, 5)]
    counted: Counter[tuple[int, int]] = Counter()
    with dedup.database.engine.connect() as connection:
        for row in connection.execute(select(*columns).where(columns[0].is_not(None))):
            counted.update(enumerate(row, 1))
    found = [(block, rows) for (block, _), rows in counted.items()]
    by_block = [sorted((f for f in found if f[0] == b), key=lambda f: -f[1])[:5] for b in range(1, 5)]
    return sorted((f for some in by_block for f in some), key=lambda f: -f[1])[:5]


def test_what_both_say_to_people(sqlite_petitions: Database) -> None:
    succeed("upgrade")
    first = succeed("scan", "petitions", "--preview")
    assert "the table has not been scanned yet: all of it would be new" in first.stderr
    succeed("scan", "petitions")
    same = succeed("scan", "petitions", "--preview", "--dry-run")
    for words in (
        "0 pairs gained",
        "0 pairs lost",
        "0 groups that split",
        "s to match",
        "it writes 0 fingerprints, 0 sketch index entries and 0 pairs: about 0.0 MB of disk\n",
        "locks: no row of petitions is locked\n",
        "locks: other writers of the database that keeps the answer wait while what differs is written",
        "nothing was written",
    ):
        assert words in same.stderr
    change_recipe(sqlite_petitions, 'term_frequency = "set"\nsegmenter = "chars:2"\nthreshold = 0.9')
    other = succeed("scan", "petitions", "--preview", "--dry-run")
    assert "it writes 90 fingerprints" in other.stderr
    assert "MB of disk, beside the stored answer, which is then removed" in other.stderr
    assert "wait up to 0.25 s at a time while the answer is written" in other.stderr
    assert "pairs lost, the first 10:" in other.stderr
    assert "key_a" in other.stdout
    assert "block" in other.stdout


def test_neither_takes_rebuild(sqlite_petitions: Database) -> None:
    assert sqlite_petitions.name == "sqlite"
    succeed("upgrade")
    for option in ("--preview", "--dry-run"):
        assert fail("scan", "petitions", option, "--rebuild").exit_code == 2
