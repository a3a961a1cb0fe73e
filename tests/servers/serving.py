"""MariaDB and MySQL servers that listen on a socket in their own folder, and nowhere else."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pymysql
from sqlalchemy import URL

from tests.servers.database import DRIVERS, Server
from tests.servers.process import ServerProcess

# The time zone is one that texts must not depend on.
SETTINGS = {"skip-networking": "1", "character-set-server": "utf8mb4", "default-time-zone": "+08:00"}

# Starts the server anew whenever it ends, as a service manager does, until it is told to stop itself.
RESTARTING = """
trap 'kill "$server"; wait "$server"; exit' TERM
while :; do
    "$@" &
    server=$!
    wait "$server"
done
"""


def serve(
    process: ServerProcess,
    name: str,
    command: Sequence[str | Path],
    settings: Mapping[str, str],
    *,
    restarts: bool,
) -> Server:
    """Start `command` in the folder of `process`, where its data are ready.

    Args:
        process: of the server.
        name: "mariadb" or "mysql".
        command: The program, and options that must come first.
        settings: of the server, over `SETTINGS`.
        restarts: Whenever it ends it is started anew.

    Raises:
        ServerUnavailableError: It does not start.
    """
    path = process.folder / "socket"
    keeper = ["/bin/sh", "-c", RESTARTING, "sh"] if restarts else []
    process.start(
        *keeper, *command, *options({**SETTINGS, **settings}),
        f"--socket={path}", f"--pid-file={process.folder / 'pid'}",
        is_ready=lambda: _answers(path),
    )  # fmt: skip
    url = URL.create(
        DRIVERS[name], username="root", host="localhost",
        # Python loads the certificates of the machine for every connection that might use them.
        query={"unix_socket": str(path), "charset": "utf8mb4", "ssl_disabled": "true"},
    )  # fmt: skip
    return Server(name, url, process.stop)


def options(settings: Mapping[str, str]) -> list[str]:
    """As the command line takes them."""
    return [f"--{name}={value}" for name, value in settings.items()]


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as attempt:  # pymysql leaves its socket open when it is refused
        if attempt.connect_ex(str(path)) != 0:
            return False
    pymysql.connect(unix_socket=str(path), user="root").close()
    return True
