"""Commands in a Python that has no more than that of Windows, where the system writes no UTF-8."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHOUT_POSIX = Path(__file__).parent / "without_posix"
LETTERS = [
    "=小区楼道的路灯坏了三个月，一直没有人来修理，请尽快处理。",
    "=小区楼道的路灯坏了三个月，一直没有人来修理，请尽快处理，谢谢。",
    "\t小区已经连续三天停水，老人和孩子生活很不方便，请尽快恢复。",
]
FINGERPRINT = """
import os

assert not hasattr(os, "fork")

from db_dedup.config import Text, WatchedTable
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcess

with FingerprintProcess(WatchedTable(name="letters", columns={"content": Text()}).recipe) as process:
    print(process.fingerprint([["小区楼道的路灯坏了三个月"]]).fingerprints)
"""


def python(*arguments: str, folder: Path) -> bytes:
    """Run Python in a folder; give what it writes to stdout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DB_DEDUP_")}
    environment |= {
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": os.pathsep.join([str(WITHOUT_POSIX), str(ROOT)]),
        "PYTHONUTF8": "0",
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def command(*arguments: str, folder: Path) -> bytes:
    return python("-m", "db_dedup.cli", *arguments, folder=folder)


@pytest.mark.parametrize("encoding", ["gbk", "utf-8-sig"])
def test_the_duplicates_in_a_file(tmp_path: Path, encoding: str) -> None:
    lines = ["编号,内容", *(f'{number},"{text}"' for number, text in enumerate(LETTERS, 1)), ""]
    (tmp_path / "letters.csv").write_bytes("\r\n".join(lines).encode(encoding))
    command("file", "letters.csv", "--out", "found.csv", folder=tmp_path)
    found = (tmp_path / "found.csv").read_bytes().decode()
    assert found.startswith("\ufeff")
    _, *rows = csv.reader(io.StringIO(found.removeprefix("\ufeff"), newline=""))
    assert [row[1] for row in rows] == [f"'{text}" for text in LETTERS]
    assert [row[2] for row in rows] == ["2", "2", "4"]


def test_the_demo_and_what_comes_after_it(tmp_path: Path) -> None:
    command("demo", "--rows", "60", folder=tmp_path)
    folder = tmp_path / "db-dedup-demo"
    pairs = command("pairs", "petitions", "--texts", "--format", "csv", folder=folder).decode()
    assert len(list(csv.reader(io.StringIO(pairs, newline="")))) > 1
    assert b"petitions" in command("status", folder=folder)


def test_the_process_that_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "fingerprint.py").write_text(FINGERPRINT, encoding="utf-8")
    assert python("fingerprint.py", folder=tmp_path).startswith(b"[")
