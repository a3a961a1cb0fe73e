"""A private MySQL server, from the folder into which `.ci/install-mysql` unpacks it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from tests.servers.database import Server
from tests.servers.other_plans import settings_of_plans
from tests.servers.process import ServerProcess, ServerUnavailableError
from tests.servers.serving import options, serve

UNPACKED = Path(__file__).parents[2] / ".tools" / "mysql"

# Nothing here must outlive the machine. Without a file for each table MySQL creates and drops databases three
# times as fast; without threads for its log it commits faster on a small machine.
FAST = {
    "skip-log-bin": "1",
    "innodb-doublewrite": "0",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-flush-method": "nosync",
    "innodb-file-per-table": "0",
    "innodb-log-writer-threads": "0",
    "innodb-redo-log-capacity": "64M",
    "innodb-use-native-aio": "0",
}
# No second protocol with a port of its own, and no folder for files that must exist.
WITHOUT = {"mysqlx": "0", "secure-file-priv": ""}


def start_mysql(settings: Mapping[str, str] | None = None, *, restarts: bool = False) -> Server:
    """Start a server that listens on a socket in its own folder.

    Args:
        settings: of the server, over `FAST`.
        restarts: Whenever it ends it is started anew.

    Raises:
        ServerUnavailableError: There is no MySQL here, or it does not start.
    """
    if not UNPACKED.exists():
        raise ServerUnavailableError("no mysqld found: .ci/install-mysql")
    process = ServerProcess("mysql", stop_signal=signal.SIGTERM)
    home = process.bring(UNPACKED)
    (loader,) = (home / "lib").glob("ld-linux*")
    command: list[str | Path] = [
        loader, "--library-path", home / "lib", home / "mysqld", "--no-defaults",
        f"--datadir={process.folder / 'data'}", f"--tmpdir={process.folder}",
        f"--lc-messages-dir={home / 'share'}", f"--character-sets-dir={home / 'share' / 'charsets'}",
    ]  # fmt: skip
    process.run(*command, *options(FAST), "--initialize-insecure")
    of_server = {**FAST, **WITHOUT, **settings_of_plans("mysql"), **(settings or {})}
    return serve(process, "mysql", command, of_server, restarts=restarts)
