"""Runs a server program in a temporary folder, never as root, and takes it down again."""

from __future__ import annotations

import atexit
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

START_SECONDS = 60.0
STOP_SECONDS = 20.0
SHOWN_LINES = 3
LONGEST_FOLDER = 70  # a socket's path may have 107 bytes in all

_ERROR = re.compile(r"\[ERROR\]|\b(error|fatal|panic|cannot|can't|could not)\b", re.IGNORECASE)

# Runs a server until this process closes the pipe between them, which it also does when it is killed.
KEEPER = """
signal=$0 folder=$1
shift
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
(read -r _ <&3; kill -s "$signal" "$server" 2>/dev/null) &
wait "$server"
command -p rm -rf "$folder"
"""


class ServerUnavailableError(Exception):
    """A server cannot be had on this machine; the message says what would help."""


class ServerProcess:
    """A temporary folder, the unprivileged user who works in it, and the server that runs there.

    Args:
        preferred_user: Whom to be when this process is root, such as "postgres"; "nobody" if that user is
            missing. An ordinary user stays who they are.
        stop_signal: What makes the server end at once and in good order.
    """

    def __init__(self, preferred_user: str, stop_signal: signal.Signals) -> None:
        self._user = _unprivileged_user(preferred_user)
        self._stop_signal = stop_signal.name.removeprefix("SIG")
        self._keeper: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop)
        self.folder = Path(tempfile.mkdtemp(prefix="dedup-", dir=_temporary_folder()))
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        atexit.register(self.stop)

    def bring(self, source: Path) -> Path:
        """Return a copy of `source` in the server's folder: its user may not be able to read the original."""
        copy = shutil.copytree(source, self.folder / source.name, copy_function=_link_or_copy)
        if self._user is not None:
            for folder, _, _ in os.walk(copy):  # whoever cannot write to a folder cannot remove it either
                os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        return copy

    def run(self, *command: str | Path) -> None:
        """Run a command to its end.

        Raises:
            ServerUnavailableError: It failed; the message carries what it said of it.
        """
        if self._popen(command, subprocess.DEVNULL).wait() != 0:
            self.fail(f"{Path(command[0]).name} failed")

    def start(self, *command: str | Path, is_ready: Callable[[], bool]) -> None:
        """Start the server and wait until `is_ready`.

        Raises:
            ServerUnavailableError: It ended early or was not ready in time.
        """
        keeper: list[str | Path] = ["/bin/sh", "-c", KEEPER, self._stop_signal, self.folder]
        self._keeper = self._popen([*keeper, *command], subprocess.PIPE)
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            if self._keeper.poll() is not None:
                self.fail(f"{Path(command[0]).name} ended as soon as it started")
            if time.monotonic() > deadline:
                self.fail(f"{Path(command[0]).name} was not ready after {START_SECONDS:.0f} s")
            time.sleep(0.02)

    def stop(self) -> None:
        """End the server and remove its folder; a second call does nothing."""
        atexit.unregister(self.stop)
        if self._keeper is not None:
            try:
                self._keeper.communicate(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._keeper.pid, signal.SIGKILL)
                self._keeper.communicate()
        self._keeper = None
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def fail(self, problem: str) -> NoReturn:
        """Clean up and give up: the `problem` and what the program said of it become the message."""
        self._log.seek(0)
        said = self._log.read().decode(errors="replace")
        self.stop()
        raise ServerUnavailableError(": ".join(filter(None, [problem, " / ".join(telling_lines(said))])))

    def _popen(self, command: Sequence[str | Path], stdin: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command,
                stdin=stdin,
                stdout=self._log,
                stderr=self._log,
                cwd=self.folder,
                env=os.environ | {"HOME": str(self.folder), "LC_ALL": "C"},
                user=self._user and self._user.pw_uid,
                group=self._user and self._user.pw_gid,
                extra_groups=self._user and [],
                start_new_session=True,  # an interrupt from the keyboard is for the tests alone
            )
        except OSError as error:
            self.fail(str(error))


def telling_lines(said: str) -> list[str]:
    """The last few lines that speak of an error, or just the last ones: some programs end with advice."""
    lines = said.strip().splitlines()
    return [line for line in lines if _ERROR.search(line)][-SHOWN_LINES:] or lines[-SHOWN_LINES:]


def find_program(name: str, folders: Iterable[Path]) -> Path | None:
    """Return the program called `name` on the PATH, or else in the first of `folders` that has it."""
    on_path = shutil.which(name)
    places = [Path(on_path)] if on_path else [folder / name for folder in folders]
    return next((place for place in places if place.exists()), None)


def _link_or_copy(source: str, target: str) -> None:
    """Link a file: programs are large. Copy it where the target is on another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _unprivileged_user(preferred: str) -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get(preferred) or users.get("nobody")
    if user is None:
        raise ServerUnavailableError(f"root must not run it, and there is no user {preferred} or nobody")
    return user


def _temporary_folder() -> str:
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= LONGEST_FOLDER else "/tmp"  # noqa: S108
