"""A private MariaDB server."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from tests.servers.database import Server
from tests.servers.other_plans import settings_of_plans
from tests.servers.process import ServerProcess, ServerUnavailableError, find_program
from tests.servers.serving import serve

FOLDERS = [Path("/usr/sbin"), Path("/usr/libexec"), Path("/usr/local/sbin"), Path("/usr/bin")]

# Nothing here must outlive the machine.
FAST = {
    "skip-log-bin": "1",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-doublewrite": "0",
    "debug-no-sync": "1",
    "sync-frm": "0",
    "innodb-log-file-size": "32M",
    "innodb-use-native-aio": "0",
}


def start_mariadb(settings: Mapping[str, str] | None = None, *, restarts: bool = False) -> Server:
    """Start a server that listens on a socket in its own folder.

    Args:
        settings: of the server, over `FAST`.
        restarts: Whenever it ends it is started anew.

    Raises:
        ServerUnavailableError: There is no MariaDB here, or it does not start.
    """
    server = _find("mariadbd")
    installer = _find("mariadb-install-db")
    try:
        return _start(server, installer, settings or {}, restarts)
    except ServerUnavailableError:  # a cold machine is slow, and then some steps of the first start fail
        return _start(server, installer, settings or {}, restarts)


def _start(server: Path, installer: Path, own: Mapping[str, str], restarts: bool) -> Server:
    process = ServerProcess("mysql", stop_signal=signal.SIGTERM)
    # A server that starts removes what others have of temporary tables in the folder for such.
    folders = [f"--datadir={process.folder / 'data'}", f"--tmpdir={process.folder}"]
    process.run(
        installer, "--no-defaults", *folders, "--auth-root-authentication-method=normal",
        "--skip-test-db", "--innodb-log-file-size=32M", "--innodb-use-native-aio=0",
    )  # fmt: skip
    command: list[str | Path] = [server, "--no-defaults", *folders]
    settings = {**FAST, **settings_of_plans("mariadb"), **own}
    return serve(process, "mariadb", command, settings, restarts=restarts)


def _find(name: str) -> Path:
    found = find_program(name, FOLDERS)
    if found is None:
        raise ServerUnavailableError(f"no {name} found: apt-get install mariadb-server")
    return found
