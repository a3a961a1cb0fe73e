"""A private MariaDB server."""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping
from pathlib import Path

import pymysql
from sqlalchemy import URL

from tests.servers.database import Server
from tests.servers.process import ServerProcess, ServerUnavailableError, find_program

FOLDERS = [Path("/usr/sbin"), Path("/usr/libexec"), Path("/usr/local/sbin"), Path("/usr/bin")]

# Nothing here must outlive the machine. The time zone is one that texts must not depend on.
SETTINGS = {
    "skip-networking": "1",
    "skip-log-bin": "1",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-doublewrite": "0",
    "debug-no-sync": "1",
    "sync-frm": "0",
    "innodb-log-file-size": "32M",
    "innodb-use-native-aio": "0",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+08:00",
}

# Starts the server anew whenever it ends, as a service manager does, until it is told to stop itself.
RESTARTING = """
trap 'kill "$server"; wait "$server"; exit' TERM
while :; do
    "$@" &
    server=$!
    wait "$server"
done
"""


def start_mariadb(settings: Mapping[str, str] | None = None, *, restarts: bool = False) -> Server:
    """Start a server that listens on a socket in its own folder.

    Args:
        settings: of the server, over `SETTINGS`.
        restarts: Whenever it ends it is started anew.

    Raises:
        ServerUnavailableError: There is no MariaDB here, or it does not start.
    """
    server = _find("mariadbd")
    installer = _find("mariadb-install-db")
    try:
        process, path = _start(server, installer, settings or {}, restarts)
    except ServerUnavailableError:  # a cold machine is slow, and then some steps of the first start fail
        process, path = _start(server, installer, settings or {}, restarts)
    url = URL.create(
        "mariadb+pymysql", username="root", host="localhost",
        # Python loads the certificates of the machine for every connection that might use them.
        query={"unix_socket": str(path), "charset": "utf8mb4", "ssl_disabled": "true"},
    )  # fmt: skip
    return Server("mariadb", url, process.stop)


def _start(
    server: Path, installer: Path, own: Mapping[str, str], restarts: bool
) -> tuple[ServerProcess, Path]:
    """A server in a fresh folder, and its socket."""
    process = ServerProcess("mysql", stop_signal=signal.SIGTERM)
    data, path = process.folder / "data", process.folder / "socket"
    # A server that starts removes what others have of temporary tables in the folder for such.
    folders = [f"--datadir={data}", f"--tmpdir={process.folder}"]
    process.run(
        installer, "--no-defaults", *folders, "--auth-root-authentication-method=normal",
        "--skip-test-db", "--innodb-log-file-size=32M", "--innodb-use-native-aio=0",
    )  # fmt: skip
    settings = [f"--{name}={value}" for name, value in {**SETTINGS, **own}.items()]
    keeper = ["/bin/sh", "-c", RESTARTING, "sh"] if restarts else []
    process.start(
        *keeper, server, "--no-defaults", *folders, f"--socket={path}",
        f"--pid-file={process.folder / 'pid'}", *settings, is_ready=lambda: _answers(path),
    )  # fmt: skip
    return process, path


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as attempt:  # pymysql leaves its socket open when it is refused
        if attempt.connect_ex(str(path)) != 0:
            return False
    pymysql.connect(unix_socket=str(path), user="root").close()
    return True


def _find(name: str) -> Path:
    found = find_program(name, FOLDERS)
    if found is None:
        raise ServerUnavailableError(f"no {name} found: apt-get install mariadb-server")
    return found
