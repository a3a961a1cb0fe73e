"""What comes out where the system writes GBK or ASCII: UTF-8 in a file, what can be shown on a terminal."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import make_url

from db_dedup.cli.shared.output import Format, print_columns, print_json, print_rows
from db_dedup.cli.shared.terminal import replace_what_cannot_be_shown
from db_dedup.config import Settings
from tests.cli.conftest import fail, succeed
from tests.cli.test_process import start
from tests.servers import Database, opened

TEXT = "小区的路灯坏了三个月，请尽快派人处理"
COLUMNS = ["row_key", "标题𠮷"]
ROWS = [["鍵😀", "路灯坏了\n停水"], ["2", "一\r\n二"]]


class Terminal(io.TextIOWrapper):
    """What can be seen of one."""

    def isatty(self) -> bool:
        return True


ENCODINGS = pytest.mark.parametrize("encoding", ["gbk", "cp1252", "ascii", "utf-8"])


@contextmanager
def redirected(encoding: str, kind: type[io.TextIOWrapper] = io.TextIOWrapper) -> Iterator[io.BytesIO]:
    """Catch what goes to stdout on a Windows of this encoding."""
    content = io.BytesIO()
    with kind(content, encoding=encoding, newline="\r\n") as stdout, redirect_stdout(stdout):
        replace_what_cannot_be_shown()
        yield content


def in_a_file(encoding: str, write: Callable[[], None]) -> str:
    with redirected(encoding) as content:
        write()
        sys.stdout.flush()
        return content.getvalue().decode()


@ENCODINGS
def test_data_in_a_file_are_utf_8(encoding: str) -> None:
    written = in_a_file(encoding, lambda: print_rows(COLUMNS, ROWS, Format.CSV))
    assert written == 'row_key,标题𠮷\n鍵😀,"路灯坏了\n停水"\n2,"一\r\n二"\n'
    written = in_a_file(encoding, lambda: print_rows(COLUMNS, ROWS, Format.SPREADSHEET))
    assert written == '\ufeffrow_key,标题𠮷\r\n鍵😀,"路灯坏了\n停水"\r\n2,"一\r\n二"\r\n'
    written = in_a_file(encoding, lambda: print_rows(COLUMNS, ROWS, Format.JSON))
    assert json.loads(written) == [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    document = {"标题": "😀", "broken": "\udce4"}
    assert json.loads(in_a_file(encoding, lambda: print_json(document))) == document


@ENCODINGS
@pytest.mark.parametrize("form", list(Format))
def test_a_terminal_shows_what_it_can(encoding: str, form: Format) -> None:
    with redirected(encoding, Terminal) as content:
        print_rows(COLUMNS, ROWS, form)
        sys.stdout.flush()
        shown = content.getvalue().decode(encoding)
    assert ("😀" in shown) == (encoding == "utf-8")
    assert ("路灯坏了" in shown) == (encoding in ("utf-8", "gbk"))
    assert "row_key" in shown


@ENCODINGS
def test_a_table_in_a_file_is_for_people(encoding: str) -> None:
    with redirected(encoding) as content:
        print_rows(COLUMNS, ROWS, Format.TABLE)
        sys.stdout.flush()
        assert "row_key" in content.getvalue().decode(encoding)


@pytest.mark.parametrize("system", ["gbk", "ascii"])
def test_a_command_where_the_system_writes_no_utf_8(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    if system == "gbk":
        monkeypatch.setenv("PYTHONIOENCODING", "gbk")
    else:
        for name, value in (("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0"), ("LC_ALL", "C")):
            monkeypatch.setenv(name, value)
    with sqlite_database.engine.begin() as connection:
        connection.exec_driver_sql('CREATE TABLE "表😀" (id TEXT PRIMARY KEY, "标题𠮷" TEXT)')
        connection.exec_driver_sql(f"INSERT INTO \"表😀\" VALUES ('鍵😀', '{TEXT}')")
    proposed = start("init", "--dry-run", "--url", sqlite_database.url)
    assert proposed.returncode == 0, proposed.stderr
    assert '[tables."表😀".columns]' in proposed.stdout.decode()
    refused = start("init", "--url", sqlite_database.url, "--table", "😀")
    assert refused.returncode == 2
    assert refused.stderr.startswith(b"error: ")
    assert refused.stderr.count(b"\n") == 1


def test_a_record_on_stdin_in_gbk_is_refused_with_its_encoding(sqlite_petitions: Database) -> None:
    assert sqlite_petitions.name == "sqlite"
    error = fail(
        "check", "petitions", stdin=json.dumps({"title": "路灯坏了"}, ensure_ascii=False).encode("gbk")
    )
    assert "stdin is not UTF-8, it seems to be GBK: write it in UTF-8" in str(error)


def test_a_windows_path_in_a_url_is_kept() -> None:
    """POSIX takes it for the name of a file in this folder."""
    url = r"sqlite:///C:\new\信访 1\petitions.db"
    assert "there is no database file" in str(fail("init", "--url", url))
    create = "CREATE TABLE petitions (id INTEGER PRIMARY KEY, content TEXT)"
    with opened("sqlite", make_url(url)) as database, database.engine.begin() as connection:
        connection.exec_driver_sql(create)
        connection.exec_driver_sql(f"INSERT INTO petitions VALUES (1, '{TEXT}')")
    succeed("init", "--url", url)
    assert Settings.from_file(Path("dedup.toml")).url == url
    succeed("upgrade")
    assert succeed("scan", "petitions", "--json").json()["rows"] == 1


VALUES: list[list[object]] = [
    ["一", "a\rb", 'say "it"', "50 %", "\ud800"],
    [1, 2, 3, -4, 5],
    [0.1, 1.0, 1e-7, 1e22, 0.30000000000000004],
    [0.5, None, float("nan"), float("inf"), 2.0],
    [None, True, False, "true", "x"],
    [1, True, 1.0, None, "1"],
    [{"a": 1, "b": [2]}, [], (), Decimal("1.50"), date(2024, 1, 2)],
]


def columns_in_a_file(names: list[str], parts: list[list[list[object]]], form: Format) -> str:
    return in_a_file("utf-8", lambda: print_columns(names, parts, form))


def rows_in_a_file(names: list[str], rows: list[tuple[object, ...]], form: Format) -> str:
    return in_a_file("utf-8", lambda: print_rows(names, rows, form))


@pytest.mark.parametrize("rows_a_part", [1, 2, 5])
def test_columns_give_the_lines_of_their_rows(rows_a_part: int) -> None:
    names = [f"{number} %s" for number in range(len(VALUES))]
    rows = list(zip(*VALUES, strict=True))
    parts = [[column[i : i + rows_a_part] for column in VALUES] for i in range(0, len(rows), rows_a_part)]
    parts.insert(1, [[] for _ in names])
    by_row = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str) for row in rows]
    expected = ("[\n" + ",\n".join(by_row) + "\n]\n").replace("\ud800", "\\ud800")
    for number in ("NaN", "Infinity"):  # JSON has no such numbers
        expected = expected.replace(f": {number},", f': "{number}",')
    assert columns_in_a_file(names, parts, Format.JSON) == expected
    assert rows_in_a_file(names, rows, Format.JSON) == expected
    for form in (Format.CSV, Format.SPREADSHEET):
        assert columns_in_a_file(names, parts, form) == rows_in_a_file(names, rows, form)
    assert '\n"a\rb",2,1.0,,True,True,[]\n' in columns_in_a_file(names, parts, Format.CSV)


@pytest.mark.parametrize("parts", [[], [[[]]]])
def test_no_columns_are_an_empty_answer(parts: list[list[list[object]]]) -> None:
    assert columns_in_a_file(["a"], parts, Format.JSON) == "[]\n"
    assert columns_in_a_file(["a"], parts, Format.CSV) == "a\n"
