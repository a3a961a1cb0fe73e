"""A disk that is full: one line, the last complete answer stands, and with room again all goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, make_url, text

from db_dedup import Deduplicator
from db_dedup.dialects import open_engine
from db_dedup.errors import DatabaseError
from tests.bad_input.conftest import OTHER, SAME, refusal, unharmed
from tests.cli.conftest import succeed
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.scan.conftest import answer
from tests.servers import Database

pytestmark = pytest.mark.usefixtures("small_pages")

PAGE_BYTES = 4096

SCAN_WITH_SMALL_FILES = """
import resource, sys
from db_dedup.cli.application import run as main
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), hard))
main()
"""


def make_petitions(database: Database) -> None:
    make(database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body TEXT, region TEXT)")
    add_petitions(database, range(40))


def add_petitions(database: Database, ids: range) -> None:
    insert = "INSERT INTO petitions VALUES (:id, :body, 'x')"
    fill(database, insert, [{"id": i, "body": SAME if i % 4 else f"{OTHER}{i}号"} for i in ids])


def is_full(database: Database) -> str:
    """The folder of the file is on no larger disk than that of temporary files, so that it is named."""
    folder = Path(str(make_url(database.url).database)).resolve().parent
    return f"the disk is full: there is no room in {folder}, the folder of the SQLite file"


def limited(database: Database, free_pages: int) -> Engine:
    """An engine whose file may grow by so many pages alone."""
    size = Path(str(make_url(database.url).database)).stat().st_size // PAGE_BYTES
    engine = open_engine(database.url)

    def limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {size + free_pages}")

    event.listen(engine, "connect", limit)
    return engine


@pytest.mark.parametrize("free_pages", [0, 1, 4, 12])
@pytest.mark.parametrize("columns", [{"body": 1}, {"body": 1, "region": {"kind": "value"}}])
def test_the_database_is_full(sqlite_database: Database, free_pages: int, columns: dict[str, object]) -> None:
    """In the middle of a scan under the recipe that serves, or under a new one."""
    make_petitions(sqlite_database)
    first = Deduplicator(sqlite_database.engine, "petitions", {"body": 1})
    first.upgrade()
    first.scan()
    add_petitions(sqlite_database, range(40, 400))
    with sqlite_database.engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    small = limited(sqlite_database, free_pages)
    with unharmed(sqlite_database, Deduplicator(sqlite_database.engine, "petitions")):
        line = refusal(Deduplicator(small, "petitions", columns).scan, DatabaseError)
        assert line == is_full(sqlite_database)
    small.dispose()
    dedup = Deduplicator(sqlite_database.engine, "petitions", columns)
    assert dedup.scan().rows == 400
    after = answer(dedup)
    dedup.database.uninstall()
    dedup.upgrade()
    dedup.scan()
    assert answer(dedup) == after


def test_no_room_to_upgrade(sqlite_database: Database) -> None:
    make_petitions(sqlite_database)
    small = limited(sqlite_database, 3)
    with unharmed(sqlite_database):
        line = refusal(Deduplicator(small, "petitions", {"body": 1}).upgrade)
        assert line == is_full(sqlite_database)
    small.dispose()
    assert Deduplicator(sqlite_database.engine, "petitions", {"body": 1}).upgrade()


def test_the_temporary_folder_is_full(sqlite_database: Database, folder: Path, tmp_path: Path) -> None:
    """The features of long texts are larger than what is written to the database."""
    make(sqlite_database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body TEXT)")
    long = [
        {"id": i, "body": "".join(chr(0x4E00 + (i * 31 + j * 7) % 20_000) for j in range(9_000))}
        for i in range(60)
    ]
    fill(sqlite_database, "INSERT INTO petitions VALUES (:id, :body)", long)
    url = f"[database]\nurl = '{sqlite_database.url}'\n[tables.petitions]\nsegmenter = 'chars:2'\n"
    (folder / "dedup.toml").write_text(f"{url}[tables.petitions.columns]\nbody = 1\n", encoding="utf-8")
    succeed("upgrade")
    succeed("scan", "petitions")
    dedup = Deduplicator(sqlite_database.engine, "petitions")
    size = Path(str(make_url(sqlite_database.url).database)).stat().st_size
    with unharmed(sqlite_database, dedup):
        done = _run(
            SCAN_WITH_SMALL_FILES, str(size + 200_000), "scan", "petitions", "--rebuild", TMPDIR=str(tmp_path)
        )
    assert done.returncode == 1
    assert done.stderr == (
        f"error: the temporary folder {tmp_path} is full: set TMPDIR to a folder with more room\n"
    )
    assert done.stdout == ""
    assert not list(tmp_path.glob("db-dedup-*"))
    succeed("scan", "petitions", "--rebuild")


def test_a_temporary_folder_that_cannot_be_used(sqlite_database: Database, folder: Path) -> None:
    make_petitions(sqlite_database)
    url = f"[database]\nurl = '{sqlite_database.url}'\n[tables.petitions.columns]\nbody = 1\n"
    (folder / "dedup.toml").write_text(url, encoding="utf-8")
    succeed("upgrade")
    gone = "import sys, tempfile; tempfile.tempdir = sys.argv.pop(1); from db_dedup.cli import main; main()"
    done = _run(gone, str(folder / "gone"), "scan", "petitions")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: the temporary folder {folder / 'gone'} cannot be used")
    assert "TMPDIR" in done.stderr
    assert len(done.stderr.splitlines()) == 1


WRITE_WITH_SMALL_FILES = """
import resource, sys
from pathlib import Path
from db_dedup.errors import TemporaryFolderError
from db_dedup.frames.excel_file import write_excel
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
try:
    write_excel(Path(sys.argv[1]), ["body"], (["the text"] for _ in range(100_000)))
except TemporaryFolderError as error:
    print(error)
"""


def test_the_temporary_folder_is_full_of_a_workbook(tmp_path: Path) -> None:
    """It is named, and the rows that were written go, which would keep it full."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = _run(WRITE_WITH_SMALL_FILES, str(tmp_path / "petitions.xlsx"), TMPDIR=str(temporary))
    assert done.stdout == f"the temporary folder {temporary} is full: set TMPDIR to a folder with more room\n"
    assert done.stderr == ""
    assert not list(temporary.iterdir())


def _run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        check=False, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": root} | environment,
    )  # fmt: skip
