"""Flags, environment variables and the file: which counts, and that help tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import inspect

from db_dedup.cli.commands import load_commands
from tests.cli.conftest import fail, run, succeed
from tests.servers import Database

COMMANDS = load_commands()


def test_the_commands_are_these() -> None:
    assert set(COMMANDS) >= {
        "check", "demo", "groups", "init", "pairs", "scan", "sql", "status", "uninstall", "upgrade",
    }  # fmt: skip


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_has_an_environment_variable_in_help(command: str) -> None:
    help_text = succeed(command, "--help", COLUMNS="500", TERMINAL_WIDTH="500").stdout
    options = [p for p in COMMANDS[command].params if p.param_type_name == "option"]
    assert options
    for option in options:
        assert option.help in help_text  # whole: rich would read [word] as markup
        assert option.envvar == f"DB_DEDUP_{option.envvar.removeprefix('DB_DEDUP_')}"
        assert option.envvar in help_text
        assert option.opts[0] in help_text


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_number_without_bounds_is_refused(command: str) -> None:
    """One that no database takes, and no memory holds."""
    for option in COMMANDS[command].params:
        if getattr(option, "min", None) is not None:
            error = run(command, f"{option.opts[0]}=1" + 20 * "0")
            assert (error.exit_code, error.stdout) == (2, "")
            assert "less than or equal to" in " ".join(error.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", ["", *sorted(COMMANDS)])
def test_help_is_not_cut_off(command: str) -> None:
    arguments = [command, "--help"] if command else ["--help"]
    assert "…" not in succeed(*arguments, COLUMNS="60", TERMINAL_WIDTH="60").stdout


@pytest.mark.parametrize("command", [c for c in sorted(COMMANDS) if c not in ("demo", "file")])
def test_every_command_takes_a_file_and_a_url(command: str) -> None:
    options = {name for p in COMMANDS[command].params for name in p.opts}
    assert {"--config", "--url"} <= options
    assert "--store-url" in options or command == "init"  # which reads the tables of the user alone


@pytest.mark.parametrize(
    "arguments",
    [
        ["scan"],
        ["scan", "petitions", "--nonsense"],
        ["groups", "petitions", "--limit", "0"],
        ["groups", "petitions", "--format", "xml"],
        ["pairs", "petitions", "extra"],
        ["sql", "nonsense"],
        ["sql", "view"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(sqlite_petitions: Database, arguments: list[str]) -> None:
    assert sqlite_petitions.name == "sqlite"
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["export", "petitions", "--output", "x.csv", "--format", "json"], "--format"),
        (["export", "petitions", "--output", "x.csv", "--format", "csv"], "--format"),
        (["upgrade", "--sql", "--to", "base"], "--to"),
        (["label", "petitions", "--list", "--undo", "1", "2"], "--undo"),
        (["label", "petitions", "--answers", "a.csv", "--undo", "1", "2"], "--answers"),
        (["scan", "petitions", "--preview", "--master", "spark://here:7077"], "--master"),
        (["scan", "petitions", "--dry-run", "--jar", "x.jar"], "--jar"),
        (["run", "--port", "9000"], "[server]"),
        (["run", "--port", "0"], "[server]"),
        (["run", "--read-only"], "[server]"),
        (["file", "x.csv", "--sheet", "one"], "--sheet"),
        (["file", "x.parquet", "--encoding", "gb18030"], "--encoding"),
        (["file", "x.xlsx", "--encoding", "gb18030"], "--encoding"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_option_that_would_do_nothing_is_refused(
    scanned: Database, arguments: list[str], word: str
) -> None:
    assert scanned.name == "sqlite"
    error = fail(*arguments)
    assert error.exit_code == 2
    assert word in str(error)
    assert [path.name for path in Path().iterdir()] == ["dedup.toml"]


def test_the_variable_of_an_option_that_does_nothing_is_not_refused(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    succeed("export", "petitions", "--output", "x.csv", DB_DEDUP_FORMAT="json")
    succeed("file", "x.csv", "--limit", "0", DB_DEDUP_SHEET="one")
    succeed("scan", "petitions", "--dry-run", DB_DEDUP_MASTER="local[1]", DB_DEDUP_SPARK_JARS="x.jar")
    succeed("label", "petitions", "--list", DB_DEDUP_ANSWERS="answers.csv")
    succeed("upgrade", "--sql", DB_DEDUP_TO="base")


def test_a_flag_counts_more_than_the_environment_and_that_more_than_the_file(
    sqlite_petitions: Database, tmp_path: Path
) -> None:
    """Which of three databases was upgraded tells whose URL was taken."""
    urls = {"file": sqlite_petitions.url}
    for name in ("environment", "flag"):
        (tmp_path / f"{name}.db").touch()
        urls[name] = f"sqlite:///{tmp_path / name}.db"

    def upgraded() -> set[str]:
        return {name for name, url in urls.items() if run("uninstall", "--dry-run", "--url", url).stdout}

    succeed("upgrade", "--url", urls["flag"], DB_DEDUP_URL=urls["environment"])
    assert upgraded() == {"flag"}
    succeed("upgrade", DB_DEDUP_URL=urls["environment"])
    assert upgraded() == {"flag", "environment"}
    succeed("upgrade")
    assert upgraded() == {"flag", "environment", "file"}


def test_the_url_replaces_nothing_but_the_url(sqlite_petitions: Database) -> None:
    text = Path("dedup.toml").read_text(encoding="utf-8")
    text = text.replace(sqlite_petitions.url, "sqlite:///nowhere.db").replace(
        "[database]\n", '[database]\nprefix = "twins_"\n'
    )
    Path("other.toml").write_text(text, encoding="utf-8")
    Path("dedup.toml").unlink()
    succeed("upgrade", "--config", "other.toml", "--url", sqlite_petitions.url)
    assert "twins_pair" in inspect(sqlite_petitions.engine).get_table_names()
    assert "dedup_pair" not in inspect(sqlite_petitions.engine).get_table_names()
    succeed("status", DB_DEDUP_CONFIG="other.toml", DB_DEDUP_URL=sqlite_petitions.url)


def test_a_file_that_was_named_must_be_there(sqlite_petitions: Database) -> None:
    result = run("status", "--config", "other.toml", "--url", sqlite_petitions.url)
    assert result.exit_code == 2
    assert "other.toml" in str(result.error)


def test_flags_from_the_environment(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    assert succeed("groups", "petitions", DB_DEDUP_LIMIT="1", DB_DEDUP_FORMAT="csv").stdout.count("\n") == 2
    assert succeed("status", DB_DEDUP_JSON="1").json()[0]["table"] == "petitions"
    assert succeed("uninstall", DB_DEDUP_DRY_RUN="1").stdout
    assert succeed("upgrade", DB_DEDUP_SQL="1").stdout
    assert succeed("uninstall", DB_DEDUP_YES="1").stdout
    assert run("uninstall", "--yes").stdout == ""
