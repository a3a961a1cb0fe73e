"""The demo: an empty folder becomes a scanned database, and is never emptied of what is not the demo's."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from db_dedup.cli import demo
from db_dedup.sample import generate_petitions
from tests.cli.conftest import fail, succeed


def test_the_demo_runs_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "which", lambda _: None)
    first = succeed("demo", "--rows", "300", "--folder", "twins")
    assert {path.name for path in (folder / "twins").iterdir()} == {
        "petitions.csv",
        "petitions.db",
        "dedup.toml",
    }
    assert f"{len(generate_petitions(300, 1).pairs)} pairs" in first.stderr
    assert first.stdout.count("of 64 bits differ") == 3
    shown = [line for line in first.stdout.splitlines() if "petition " in line]
    assert len({line.split("┃")[2].strip() for line in shown}) == 3

    title, *commands, advice, place = first.stderr.rpartition("\n\n")[2].splitlines()
    assert title == "Next, in twins:"
    programs = [shlex.split(command, comments=True)[0] for command in commands]
    assert programs == ["db-dedup", "db-dedup", "db-dedup", "echo", "sqlite3"]
    assert advice.startswith("With your own database: db-dedup init ")
    assert place.startswith("db-dedup is not on your PATH: write ")

    again = succeed("demo", DB_DEDUP_DEMO_ROWS="300", DB_DEDUP_DEMO_FOLDER="twins")
    assert again.stdout == first.stdout

    monkeypatch.chdir("twins")
    (status,) = succeed("status", "--json").json()
    assert status["rows"] == 300
    groups = succeed("groups", "petitions", "--format", "json").json()
    of_file = succeed("file", "petitions.csv", "--within", "region", "--json").json()["groups"]
    assert [group["size"] for group in of_file] == [group["size"] for group in groups]


def test_a_folder_with_other_files_is_left_alone(folder: Path) -> None:
    (folder / "thesis.txt").write_text("years of work", encoding="utf-8")
    (folder / "dedup.toml").write_text("# mine", encoding="utf-8")
    error = fail("demo", "--rows", "10", "--folder", str(folder))
    assert error.exit_code == 2
    assert "thesis.txt" in str(error)
    assert {path.name for path in folder.iterdir()} == {"thesis.txt", "dedup.toml"}
    assert (folder / "dedup.toml").read_text(encoding="utf-8") == "# mine"


@pytest.mark.parametrize("own_settings", [None, "# mine"])
def test_a_database_of_the_same_name_is_not_removed(folder: Path, own_settings: str | None) -> None:
    (folder / "petitions.db").write_text("years of work", encoding="utf-8")
    if own_settings is not None:
        (folder / "dedup.toml").write_text(own_settings, encoding="utf-8")
    error = fail("demo", "--rows", "10", "--folder", str(folder))
    assert error.exit_code == 2
    assert "choose another --folder" in str(error)
    assert (folder / "petitions.db").read_text(encoding="utf-8") == "years of work"
