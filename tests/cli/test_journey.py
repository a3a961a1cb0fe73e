"""From a database that knows nothing of us to its duplicates, and back to nothing."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from sqlalchemy import inspect

from db_dedup.config import Settings
from db_dedup.schema.revisions import head_revision
from tests.cli.conftest import rows, run, succeed, view
from tests.servers import Database


def test_the_whole_journey(petitions: Database) -> None:
    database = petitions
    Path("dedup.toml").unlink()
    url = {"DB_DEDUP_URL": database.url}
    before = rows(database.engine, "SELECT * FROM petitions ORDER BY id")

    assert "dedup.toml" in succeed("init", **url).stderr
    assert succeed("upgrade", **url).stdout == ""
    assert succeed("upgrade", **url).stderr.endswith(f" {head_revision()}\n")

    scan = succeed("scan", "petitions", "--json", **url)
    report = scan.json()
    assert report["rows"] == len(before)
    assert report["groups"] > 0
    assert f"{report['groups']:,} duplicate groups" in scan.stderr
    assert succeed("scan", "petitions", **url).stdout == ""

    _check_groups(database, report["groups"])
    _check_pairs(database, report["pairs"] + report["copies"])
    _check_status(database, report)
    _check_view_statements(database)

    names = succeed("uninstall", "--dry-run", **url).stdout.split()
    assert succeed("groups", "petitions", **url).stdout
    assert succeed("uninstall", "--yes", **url).stdout.split() == names
    inspector = inspect(database.engine)
    assert inspector.get_table_names() == ["petitions"]
    assert inspector.get_view_names() == []
    assert "dedup" not in inspector.get_schema_names()
    assert rows(database.engine, "SELECT * FROM petitions ORDER BY id") == before
    assert "nothing of db_dedup" in succeed("uninstall", "--yes", **url).stderr


def _check_groups(database: Database, count: int) -> None:
    url = {"DB_DEDUP_URL": database.url}
    found = succeed("groups", "petitions", "--format", "json", **url).json()
    assert len(found) == count
    assert [g["size"] for g in found] == sorted((g["size"] for g in found), reverse=True)
    assert found[0].keys() == {"group_id", "size", "representative_key", "is_loose", "is_abridged"}
    assert isinstance(found[0]["is_loose"], bool)
    assert succeed("groups", "petitions", "--format", "json", "--limit", "2", **url).json() == found[:2]
    lines = succeed("groups", "petitions", "--format", "csv", **url).stdout.splitlines()
    assert lines[0] == "group_id,size,representative_key,is_loose,is_abridged"
    assert len(lines) == 1 + count
    table = succeed("groups", "petitions", "--limit", "1", **url).stdout
    assert "group_id" in table
    assert found[0]["group_id"] in table


def _check_pairs(database: Database, count: int) -> None:
    url = {"DB_DEDUP_URL": database.url}
    text = succeed("pairs", "petitions", "--format", "csv", **url).stdout
    assert text.startswith("key_a,key_b,distance,similarity\n")
    from_csv = [
        (line["key_a"], line["key_b"], int(line["distance"]), float(line["similarity"]))
        for line in csv.DictReader(io.StringIO(text))
    ]
    stored = rows(
        database.engine,
        f"SELECT key_a, key_b, distance, similarity FROM {view(database, 'duplicate_pairs')}",
    )
    assert sorted(from_csv) == sorted((a, b, d, float(s)) for a, b, d, s in stored)
    assert len(from_csv) == count
    as_json = succeed("pairs", "petitions", "--format", "json", **url).json()
    assert sorted(tuple(pair.values())[:4] for pair in as_json) == sorted(from_csv)
    assert "similarity" in succeed("pairs", "petitions", **url).stdout


def _check_status(database: Database, report: dict[str, object]) -> None:
    url = {"DB_DEDUP_URL": database.url}
    (status,) = succeed("status", "--json", **url).json()
    assert status["is_scanned"] is True
    assert status["last_scan_state"] == "finished"
    for name in ("table", "rows", "fingerprints", "too_little_text", "copies", "pairs", "groups"):
        assert status[name] == report[name]
    table = succeed("status", **url).stdout
    assert "last_scan_finished" in table
    assert "petitions" in table


def _check_view_statements(database: Database) -> None:
    """The view that is printed is the one that stands: dropped and made by hand it shows the same."""
    url = {"DB_DEDUP_URL": database.url}
    name = view(database, "duplicates_of_petitions")
    query = f"SELECT group_id, group_size, id FROM {name} ORDER BY id"
    before = rows(database.engine, query)
    assert before
    statements = succeed("sql", "view", "petitions", **url).stdout
    run_script(database, statements)
    assert rows(database.engine, query) == before


def test_the_sql_of_upgrade_makes_what_upgrade_makes(petitions: Database) -> None:
    script = succeed("upgrade", "--sql").stdout
    assert script == succeed("sql", "upgrade").stdout
    assert inspect(petitions.engine).get_table_names() == ["petitions"]
    run_script(petitions, script)
    assert succeed("upgrade").stderr.endswith(f" {head_revision()}\n")
    assert json.loads(succeed("scan", "petitions", "--json").stdout)["groups"] > 0


def run_script(database: Database, script: str) -> None:
    """As a database's own shell would."""
    connection = database.engine.raw_connection()
    try:
        cursor = connection.cursor()
        if database.name == "sqlite":
            cursor.executescript(script)
        elif database.name == "postgresql":
            cursor.execute(script)
        else:
            for statement in script.split(";\n"):
                if statement.strip():
                    cursor.execute(statement)
        connection.commit()
    finally:
        connection.close()


def test_upgrade_goes_back_to_nothing(petitions: Database) -> None:
    succeed("upgrade")
    succeed("upgrade", "--to", "base")
    assert inspect(petitions.engine).get_table_names() == ["petitions"]


def test_uninstall_asks_first(scanned: Database) -> None:
    result = run("uninstall", stdin="n\n")
    assert result.exit_code == 1
    assert "Drop these" in result.stderr
    assert succeed("groups", "petitions").stdout
    assert "no longer" in run("uninstall", stdin="y\n").stderr
    assert inspect(scanned.engine).get_table_names() == ["petitions"]


def test_the_stored_recipe_serves_without_a_file(sqlite_petitions: Database) -> None:
    petitions = sqlite_petitions
    succeed("upgrade")
    first = succeed("scan", "petitions", "--json").json()
    Path("dedup.toml").unlink()
    by_flag = succeed("scan", "petitions", "--json", "--url", petitions.url).json()
    for report in (first, by_flag):
        for name in ("seconds", "parts", "segmented", "pairs_gained", "pairs_lost", "groups_changed"):
            del report[name]
        del report["frames"]["drift"]  # the first scan has nothing to compare with
    assert by_flag == first
    for command in ("groups", "pairs"):
        with_flag = succeed(command, "petitions", "--format", "json", "--url", petitions.url)
        assert with_flag.json()
        assert with_flag == succeed(command, "petitions", "--format", "json", DB_DEDUP_URL=petitions.url)


def test_our_tables_stand_where_the_file_says(petitions: Database) -> None:
    text = Path("dedup.toml").read_text(encoding="utf-8")
    Path("dedup.toml").write_text(
        text.replace("[database]\n", '[database]\nschema = "twins"\nprefix = "twins_"\n'), encoding="utf-8"
    )
    assert Settings.from_file(Path("dedup.toml")).prefix == "twins_"
    succeed("upgrade")
    succeed("scan", "petitions")
    name = "twins.duplicate_groups" if petitions.name == "postgresql" else "twins_duplicate_groups"
    assert rows(petitions.engine, f"SELECT * FROM {name}")
    succeed("uninstall", "--yes")
    assert inspect(petitions.engine).get_table_names() == ["petitions"]
