"""Whatever is thrown at the settings, the command line and the names: an answer or one clear line."""

from __future__ import annotations

import io
import json
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, String, Table, bindparam, insert, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.elements import quoted_name

from db_dedup import Deduplicator
from db_dedup.cli.application import run as main
from db_dedup.config import Settings
from db_dedup.errors import ConfigError, DedupError
from tests.bad_input.conftest import NEAR, OTHER, SAME
from tests.cli.conftest import scanned_file, write_settings
from tests.scan.test_user_tables import own_view
from tests.servers import Database

__all__ = ["scanned_file"]

DOCUMENT = """\
[database]
url = "sqlite:///petitions.db"
schema = "dedup"
prefix = "dedup_"

[tables.petitions]
table = "letters"
key = ["office", "id"]
order = "created_at"
where = "region <> 'x'"
within = [{ column = "region" }, { column = "created_at", by = "month" }]
preset = "strict"
radius = 7
similarity = "cosine"
threshold = 0.75
term_frequency = "log"
min_features = 2
segmenter = "chars:2"
normaliser = "tweet"
user_words = ["历下区", "停水"]
stop_words = "keep"
abridge_above = 500

[tables.petitions.columns]
title = 3
content = { kind = "text", weight = 2 }
region = { kind = "value" }
"""
PIECES = [
    *(
        "\n",
        '"',
        "'",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        ".",
        "#",
        "\\",
        "\0",
        "\u202e",
        "\ufeff",
        "\r",
        "历",
        "😀",
    ),
    *("-1", "1e999", "nan", "true", "2024-02-29", "0x_", "'''", '"""', "[tables]", "[tables.petitions]\n"),
    *("columns", "weight = ", "key = "),
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The document with some places cut out, doubled or replaced."""
    found = DOCUMENT
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(found)))
        end = min(len(found), start + draw(st.sampled_from([0, 1, 1, 2, 5, 20, 80])))
        middle = draw(st.sampled_from(["", found[start:end] * 2, *PIECES]) | st.text(max_size=4))
        found = found[:start] + middle + found[end:]
    return found


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(mutated())
@example(DOCUMENT)
def test_any_settings_file(folder: Path, document: str) -> None:
    path = folder / "dedup.toml"
    path.write_bytes(document.encode("utf-8", "surrogatepass"))
    try:
        found = Settings.from_file(path)
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - most documents are faulty, some are not
        assert error.exit_code == 2  # noqa: PT017
    else:
        for watched in found.tables.values():
            assert watched.recipe_digest()


COMMANDS = [
    "init",
    "upgrade",
    "scan",
    "pairs",
    "groups",
    "explain",
    "check",
    "attach",
    "detach",
    "worker",
    "retry",
    "status",
    "verify",
    "sql",
    "uninstall",
    "help",
]
OPTIONS = [
    "--config",
    "--url",
    "--json",
    "--format",
    "--expand",
    "--limit",
    "--table",
    "--dry-run",
    "--force",
    "--yes",
    "--to",
    "--sql",
    "--rebuild",
    "--preview",
    "--drain",
    "--batch",
    "--poll",
    "--help",
    "-h",
    "--",
    "-",
    "--no",
]
VALUES = [
    *("petitions", "petition", "1", "2", "0", "-1", "9" * 21, "1e9", "nan", "csv", "json", "table", "view"),
    *(
        "upgrade",
        "base",
        "0001",
        "dedup.toml",
        "missing.toml",
        ".",
        "",
        " ",
        "sqlite://",
        "sqlite:///copy.db",
    ),
    *("sqlite:///missing.db", "mysql://x:s3cret@127.0.0.1:1/y", "\0", "\udcff", "😀", "it's", "a\nb", "%s"),
    "[bold]",
]
argument_lists = st.builds(
    lambda command, rest: [command, *rest],
    st.sampled_from(COMMANDS) | st.text(max_size=5),
    st.lists(st.sampled_from(OPTIONS) | st.sampled_from(VALUES) | st.text(max_size=6), max_size=6),
)
inputs = st.sampled_from([b"", b"{}", b"[]", b'{"content": "x"}', b"y\n", b"\xff"]) | st.binary(max_size=20)


def run_main(arguments: list[str], stdin: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[object, str, str]:
    """(exit code, stdout, stderr) of the command line itself."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with monkeypatch.context() as patched, redirect_stdout(stdout), redirect_stderr(stderr):
        patched.setattr(sys, "argv", ["db-dedup", *arguments])
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as caught:
            main()
    return caught.value.code, stdout.getvalue(), stderr.getvalue()


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(argument_lists, inputs)
@example(["explain", "petitions", "1", "\udcff"], b"")
@example(["groups", "petitions", "--config", "\0"], b"")
@example(["check", "petitions"], b'{"content": "\\ud800\\u0000"}')
@example(["pairs", "petitions", "--format", "[bold]"], b"")
@example(["scan", "a\nb"], b"")
@example(["status", "--url", "mysql://x:s3cret@127.0.0.1:1/y?nonsense=1"], b"")
def test_any_command_line(
    scanned_file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], stdin: bytes
) -> None:
    monkeypatch.setenv("DB_DEDUP_DRAIN", "1")  # a worker that waits for changes would wait for ever
    monkeypatch.setenv("HOME", str(folder))
    for left in folder.iterdir():
        left.unlink()
    shutil.copy(scanned_file, folder / "copy.db")
    write_settings(Database("sqlite", "sqlite:///copy.db", None))  # type: ignore[arg-type]
    code, _, stderr = run_main(arguments, stdin, monkeypatch)
    assert code in (0, 1, 2, None), (arguments, stderr)
    assert "Traceback" not in stderr
    errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) <= 1
    assert "s3cret" not in "".join(errors)
    if code == 0:
        assert not errors


odd_letters = st.sampled_from("aB_1 .:%`\"'[](){}\\;-@$#\t\n") | st.characters(exclude_categories=["Cs"])
ODD_NAMES = [
    *("select", "ORDER", "group", "own", "member", "first", "dedup_0", "row_key", "group_id", "GROUP_SIZE"),
    *("own_group_id", "id" * 31, "%(x)s", ":name", "长" * 21, "a`b", "😀", "''", '""'),
]
names = st.text(odd_letters, min_size=1, max_size=20) | st.sampled_from(ODD_NAMES)


def scan_under_names(database: Database, table_name: str, column_names: list[str]) -> None:
    """A scan of a table of these names works, or says in one line why not."""
    key, body, other = column_names
    table = Table(
        quoted_name(table_name, quote=True), MetaData(),
        Column(quoted_name(key, quote=True), Integer, primary_key=True, autoincrement=False),
        Column(quoted_name(body, quote=True), String(200)),
        Column(quoted_name(other, quote=True), String(20)),
    )  # fmt: skip
    statement = insert(table).values({c: bindparam(f"v{i}") for i, c in enumerate(table.columns)})
    rows = [{"v0": i, "v1": letter, "v2": "x"} for i, letter in enumerate((SAME, NEAR, OTHER))]
    try:
        with database.engine.begin() as connection:
            table.create(connection, checkfirst=False)
            connection.execute(statement, rows)
    except (SQLAlchemyError, UnicodeError, ValueError):
        assume(False)
    dedup = Deduplicator(database.engine, table_name, {body: 1, other: {"kind": "value"}}, within=[other])
    try:
        dedup.upgrade()
        assert dedup.scan().grouped_rows == 2
        with database.engine.connect() as connection:
            found = connection.exec_driver_sql(f"SELECT * FROM {own_view(dedup, table_name)}", ())
            assert len(found.all()) == 2
        assert len(dedup.check({body: SAME, other: "x"})) == 2
    except DedupError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - some names are refused, most are not
        assert "烧烤" not in str(error)  # noqa: PT017
    finally:
        dedup.database.uninstall()
        with database.engine.begin() as connection:
            table.drop(connection)


column_lists = st.lists(names, min_size=3, max_size=3, unique_by=lambda name: name.casefold())


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(names, column_lists)
def test_any_names_in_sqlite(sqlite_database: Database, table_name: str, column_names: list[str]) -> None:
    scan_under_names(sqlite_database, table_name, column_names)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(names, column_lists)
def test_any_names_in_postgresql(
    postgresql_database: Database, table_name: str, column_names: list[str]
) -> None:
    scan_under_names(postgresql_database, table_name, column_names)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(names, column_lists)
def test_any_names_in_mariadb(mariadb_or_mysql: Database, table_name: str, column_names: list[str]) -> None:
    scan_under_names(mariadb_or_mysql, table_name, column_names)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(["title", "content", "region", "id"]), values))
def test_any_record_is_checked(scanned_file: Path, folder: Path, record: dict[str, Any]) -> None:
    if not (folder / "copy.db").exists():
        shutil.copy(scanned_file, folder / "copy.db")
    dedup = Deduplicator("sqlite:///copy.db", "petitions")
    matches = dedup.check(json.loads(json.dumps(record)))
    with dedup.database.engine.connect() as connection:
        keys = {str(key) for key in connection.execute(text("SELECT id FROM petitions")).scalars()}
    dedup.database.close()
    assert {match.row_key for match in matches} <= keys
