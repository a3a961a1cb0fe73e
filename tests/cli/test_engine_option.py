"""Which engine scans: by option, by environment, by `[engine]` of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from db_dedup.app.engines import find_engine, settings_for
from db_dedup.config import EngineSettings, Settings
from db_dedup.engines.embedded import table_scan
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.flow.matching.budget import MATCHING_MB
from db_dedup.flow.matching.match import Matches, match_table
from tests.cli.conftest import fail, succeed, write_settings
from tests.servers import Database


@pytest.fixture
def file(sqlite_petitions: Database) -> Path:
    write_settings(sqlite_petitions)
    succeed("upgrade")
    return Path("dedup.toml")


def in_file(file: Path, *lines: str) -> None:
    file.write_text("\n".join(["[engine]", *lines, file.read_text("utf-8")]), "utf-8")


def test_an_engine_that_is_not_there(file: Path) -> None:
    assert isinstance(fail("scan", "petitions", "--engine", "sparc"), UnknownNameError)
    in_file(file, 'name = "sparc"')
    assert "'sparc': did you mean spark?" in str(fail("scan", "petitions"))
    succeed("scan", "petitions", "--engine", "embedded")
    succeed("scan", "petitions", DB_DEDUP_ENGINE="embedded")


def test_settings_need_their_engine(file: Path) -> None:
    assert "add --engine spark" in str(fail("scan", "petitions", "--master", "local[1]"))
    in_file(file, 'master = "local[1]"')
    assert "add --engine spark" in str(fail("scan", "petitions"))
    succeed("scan", "petitions", "--engine", "embedded")


def test_the_memory_is_a_setting_of_the_embedded_engine(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = []

    def matching(*arguments: Any) -> Matches:
        budgets.append(arguments[-1])
        return match_table(*arguments)

    monkeypatch.setattr(table_scan, "match_table", matching)
    succeed("scan", "petitions", "--rebuild")
    in_file(file, "matching_mb = 7")
    succeed("scan", "petitions", "--rebuild")
    succeed("scan", "petitions", "--rebuild", "--engine", "embedded")
    assert [budget.memory >> 20 for budget in budgets] == [MATCHING_MB, 7, 7]
    settings = EngineSettings(name="spark", master="local[1]", matching_mb=7)
    with pytest.raises(ConfigError, match="matching_mb: the engine 'spark' has no such settings"):
        find_engine(settings)
    assert settings_for("spark", settings) == EngineSettings(name="spark", master="local[1]")


def test_previews_have_no_engine(file: Path) -> None:
    assert file.exists()
    for flag in ("--preview", "--dry-run"):
        assert "leave --engine out" in str(fail("scan", "petitions", flag, "--engine", "spark"))


def test_the_section(file: Path) -> None:
    in_file(
        file,
        'name = "spark"',
        'master = "spark://host:7077"',
        'jars = ["drivers/one.jar", "https://host/two.jar"]',
        "partitions = 8",
        'options = {"spark.executor.memory" = "4g"}',
    )
    engine = Settings.from_file(file).engine
    assert (engine.name, engine.master, engine.partitions) == ("spark", "spark://host:7077", 8)
    assert engine.jars == (str(Path("drivers/one.jar")), "https://host/two.jar")
    assert engine.options == {"spark.executor.memory": "4g"}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("partition = 8", "unknown setting in [engine] 'partition': did you mean partitions"),
        ("partitions = 0", "partitions"),
        ("matching_mb = 0", "matching_mb"),
        ("matching_mb = 99999999999999999999", "matching_mb"),
        ('jars = "one.jar"', "jars"),
        ("options = {cores = 4}", "options"),
    ],
)
def test_a_wrong_setting(file: Path, line: str, fault: str) -> None:
    in_file(file, line)
    error = fail("scan", "petitions")
    assert isinstance(error, ConfigError)
    assert fault in str(error)
