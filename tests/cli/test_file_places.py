"""`file`: which places it takes for its files, and what it says of those that it cannot use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.cli.conftest import fail, run, succeed

LETTERS = "标题,内容\n" + "".join(f"路灯{n},小区楼道的路灯坏了{n}个月，一直没有人来修理\n" for n in range(9))

WRITE_WITH_SMALL_FILES = """
import resource
from pathlib import Path
from db_dedup.errors import TemporaryFolderError
from db_dedup.frames.excel_file import write_excel
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
try:
    write_excel(Path("found.xlsx"), ["body"], [[f"路灯坏了{n}个月"] for n in range(5_000)])
except TemporaryFolderError as error:
    print(error)
"""


@pytest.fixture
def letters() -> Path:
    path = Path("letters.csv")
    path.write_text(LETTERS, encoding="utf-8")
    return path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(path))
    return path


@pytest.fixture
def small_databases() -> Iterator[None]:
    """No SQLite file that is opened meanwhile has room for more than some pages."""

    def limit(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA max_page_count = 20")

    event.listen(Engine, "connect", limit)
    yield
    event.remove(Engine, "connect", limit)


@pytest.mark.parametrize("out", ["kept.csv", "./kept.csv", "link.csv"])
def test_the_database_is_not_replaced_by_the_rows(letters: Path, out: str) -> None:
    Path("link.csv").symlink_to("kept.csv")
    error = fail("file", str(letters), "--database", "kept.csv", "--out", out)
    assert str(error) == "--database and --out name the same file kept.csv: name two files"
    assert not Path("kept.csv").exists()


def test_a_database_without_a_place_is_refused_before_the_file_is_read() -> None:
    Path("kept.db").write_bytes(b"notes")
    Path("broken.csv").write_bytes(b"\xff\xff")
    error = fail("file", "broken.csv", "--database", "kept.db")
    assert str(error) == "kept.db is there already: name a file that is not, or remove it"
    error = fail("file", "broken.csv", "--database", "gone/kept.db")
    assert str(error) == "--database gone/kept.db: there is no folder gone"
    assert Path("kept.db").read_bytes() == b"notes"


def test_a_folder_and_a_pipe_are_named_as_such() -> None:
    os.mkfifo("pipe.csv")
    for name in (".", "pipe.csv"):
        assert (
            str(fail("file", name)) == f"{name} is a folder or a pipe: save the rows in a file, and name it"
        )


@pytest.mark.usefixtures("small_databases")
def test_a_full_folder_for_temporary_files_is_named(letters: Path, temporary: Path) -> None:
    error = fail("file", str(letters))
    assert str(error) == f"the temporary folder {temporary} is full: set TMPDIR to a folder with more room"
    assert not list(temporary.iterdir())
    kept = run("file", str(letters), "--database", "kept.db").error
    assert f"no room in {Path.cwd()}, the folder of the SQLite file" in str(kept)


def test_a_folder_for_temporary_files_that_is_gone_is_named(letters: Path, temporary: Path) -> None:
    temporary.rmdir()
    error = fail("file", str(letters))
    assert f"the temporary folder {temporary} cannot be used (No such file" in str(error)


def test_a_workbook_leaves_no_rows_in_a_full_folder(temporary: Path) -> None:
    """XlsxWriter keeps the rows in temporary files, and leaves them there when it fails."""
    environment = {**os.environ, "TMPDIR": str(temporary), "DB_DEDUP_LANG": "en"}
    command = [sys.executable, "-c", WRITE_WITH_SMALL_FILES]
    said = subprocess.run(command, env=environment, text=True, check=True, stdout=subprocess.PIPE).stdout
    assert said == f"the temporary folder {temporary} is full: set TMPDIR to a folder with more room\n"
    assert not list(temporary.iterdir())
    assert not Path("found.xlsx").exists()


def test_a_file_leaves_nothing_in_the_folder_for_temporary_files(letters: Path, temporary: Path) -> None:
    succeed("file", str(letters), "--out", "found.xlsx", "--limit", "0")
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("wrong", ["--column nope", "--column 内容 --within nope", "--preset nope"])
def test_nothing_is_said_to_be_compared_before_a_wrong_name(letters: Path, wrong: str) -> None:
    done = run("file", str(letters), *wrong.split())
    assert "nope" in str(done.error)
    assert "compared" not in done.stderr
