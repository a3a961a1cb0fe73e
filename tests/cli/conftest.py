"""A folder to work in, a database with petitions, and the command line as a function."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Engine, text
from typer.testing import CliRunner

from db_dedup.cli.application import app
from db_dedup.cli.demo import fill
from db_dedup.errors import DedupError
from db_dedup.sample import Sample, generate_petitions
from tests.servers import Database, opened

TABLE_SETTINGS = """
[tables.petitions]
order = "created_at"
{settings}
[tables.petitions.columns]
title = 1
content = 1
"""


@dataclass(frozen=True)
class Result:
    """What a command did; an error of ours is kept, since only `main` turns it into a line."""

    exit_code: int
    stdout: str
    stderr: str
    error: DedupError | None

    def json(self) -> Any:
        return json.loads(self.stdout)


def run(*arguments: str, stdin: str | bytes | None = None, **environment: str) -> Result:
    """Run a command in this process."""
    done = CliRunner().invoke(app, arguments, input=stdin, env=environment)
    error = done.exception if isinstance(done.exception, DedupError) else None
    if done.exception and not error and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Result(error.exit_code if error else done.exit_code, done.stdout, done.stderr, error)


def succeed(*arguments: str, stdin: str | None = None, **environment: str) -> Result:
    """Run a command that must do what it is for."""
    result = run(*arguments, stdin=stdin, **environment)
    assert result.exit_code == 0, result
    return result


def fail(*arguments: str, stdin: str | bytes | None = None, **environment: str) -> DedupError:
    """Run a command that must end in an error of ours, told in one line, with nothing on stdout."""
    result = run(*arguments, stdin=stdin, **environment)
    assert result.error is not None, result
    assert len(str(result.error).splitlines()) == 1
    assert result.stdout == ""
    return result.error


def write_settings(database: Database, settings: str = "", name: str = "dedup.toml") -> None:
    """A settings file for the petitions."""
    url = json.dumps(database.url)
    text = f"[database]\nurl = {url}\n{TABLE_SETTINGS.format(settings=settings)}"
    Path(name).write_text(text, encoding="utf-8")


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def view(database: Database, name: str) -> str:
    """A view or table of ours, as a query names it."""
    return f"dedup.{name}" if database.name == "postgresql" else f"dedup_{name}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and an environment that settles nothing."""
    for variable in list(os.environ):
        # The others say which servers the tests use, and a server may start after this.
        if variable.startswith("DB_DEDUP_") and not variable.startswith("DB_DEDUP_TEST_"):
            monkeypatch.delenv(variable)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture(scope="session")
def sample() -> Sample:
    return generate_petitions(120, seed=5, duplicate_share=0.4)


@pytest.fixture
def petitions(database: Database, sample: Sample) -> Database:
    """A database of each kind with some petitions, and a settings file beside it."""
    return _with_petitions(database, sample)


@pytest.fixture
def sqlite_petitions(sqlite_database: Database, sample: Sample) -> Database:
    return _with_petitions(sqlite_database, sample)


@pytest.fixture(scope="session")
def scanned_file(tmp_path_factory: pytest.TempPathFactory, sample: Sample) -> Path:
    """Petitions in SQLite, scanned once for all tests that begin there."""
    path = tmp_path_factory.mktemp("scanned") / "database.db"
    with opened("sqlite", URL.create("sqlite", database=str(path))) as database:
        with database.engine.begin() as connection:
            fill(connection, sample)
        settings = str(path.with_name("dedup.toml"))
        write_settings(database, name=settings)
        for command in (["upgrade"], ["scan", "petitions"]):
            succeed(*command, "--config", settings, "--url", database.url)
    return path


@pytest.fixture
def scanned(scanned_file: Path, sqlite_database: Database) -> Database:
    """A copy of that database for one test, and a settings file beside it."""
    shutil.copy(scanned_file, str(sqlite_database.engine.url.database))
    write_settings(sqlite_database)
    return sqlite_database


def _with_petitions(database: Database, sample: Sample) -> Database:
    with database.engine.begin() as connection:
        fill(connection, sample)
    write_settings(database)
    return database
