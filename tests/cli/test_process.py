"""What only a process of its own shows: exit codes, streams and broken pipes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("disk", ["full", "pipe"])
def test_a_message_that_cannot_be_written_stops_no_work(scanned: Database, disk: str) -> None:
    """The disk of the log is full, or its reader has ended."""
    assert scanned.name == "sqlite"
    read_end, write_end = os.pipe()
    os.close(read_end)
    messages = write_end if disk == "pipe" else os.open("/dev/full", os.O_WRONLY)
    for arguments in (("scan", "petitions"), ("attach", "petitions"), ("worker", "petitions", "--drain")):
        done = subprocess.run([*COMMAND, *arguments], stderr=messages, check=False, timeout=60)
        assert done.returncode == 0
    missing = subprocess.run([*COMMAND, "groups", "letters"], stderr=messages, check=False, timeout=60)
    assert missing.returncode == 2
    for opened in {messages, write_end}:
        os.close(opened)


@pytest.mark.parametrize(
    "command", ["scan petitions --rebuild", "schedule petitions --every 1h", "serve --port 0"]
)
def test_a_refused_thread_is_one_line(scanned: Database, command: str) -> None:
    assert scanned.name == "sqlite"
    # No thread can have a stack of this size.
    program = "import threading; threading.stack_size(1 << 47); from db_dedup.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()], stderr=subprocess.PIPE, check=False, timeout=60
    )
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith(b"error: the system does not let this process start another thread")
    assert b"Traceback" not in done.stderr


def test_json_nested_without_end_is_refused() -> None:
    done = start("check", "petitions", stdin=b"[" * 100_000)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_the_version_goes_to_stdout() -> None:
    done = start("--version")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, f"db-dedup {__version__}\n", b"")


@pytest.mark.skipif(os.name == "nt", reason="this shell cannot close a stream")
@pytest.mark.parametrize(
    ("closed", "arguments", "code", "told"),
    [
        (">&-", ("status",), 0, b""),
        (">&-", ("groups", "letters"), 2, b"error: unknown table of the settings"),
        ("<&-", ("check", "petitions"), 2, b"error: stdin is no JSON object"),
        ("2>&-", ("groups", "letters"), 2, b""),
    ],
)
def test_a_closed_stream_is_no_fault(
    scanned: Database, closed: str, arguments: tuple[str, ...], code: int, told: bytes
) -> None:
    assert scanned.name == "sqlite"
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr[: len(told) or None]) == (code, told)


@pytest.mark.parametrize(
    "arguments", [("groups", "petitions"), ("groups", "petitions", "--texts"), ("--help",)]
)
def test_no_width_counts_as_an_unknown_width(
    scanned: Database, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scanned.name == "sqlite"
    monkeypatch.delenv("COLUMNS", raising=False)
    wanted = start(*arguments).stdout
    monkeypatch.setenv("COLUMNS", "0")
    assert start(*arguments).stdout == wanted != b""
