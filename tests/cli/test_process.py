"""What only a process of its own shows: exit codes, streams and broken pipes."""

from __future__ import annotations

import os
import subprocess
import sys

from db_dedup import __version__
from tests.servers import Database

COMMAND = (sys.executable, "-m", "db_dedup.cli")


def start(
    *arguments: str, stdin: bytes = b"", stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    # Unbuffered, no output would be left over for the end, where a broken pipe is hardest to catch.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
        timeout=60,
    )


def test_an_error_is_one_line_on_stderr(sqlite_petitions: Database) -> None:
    assert sqlite_petitions.name == "sqlite"
    done = start("groups", "petitions")
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(b"error: ")
    assert done.stderr.count(b"\n") == 1


def test_a_reader_that_has_enough_ends_the_output_quietly(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = start("pairs", "petitions", "--format", "csv", stdout=write_end)
    os.close(write_end)
    assert done.stderr == b""


def test_json_nested_without_end_is_refused() -> None:
    done = start("check", "petitions", stdin=b"[" * 100_000)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_the_version_goes_to_stdout() -> None:
    done = start("--version")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, f"db-dedup {__version__}\n", b"")
