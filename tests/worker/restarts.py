"""Database servers that are restarted, or killed, and come back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.servers import Database
from tests.worker.child import SECONDS

# What was committed must outlive the process.
DURABLE_MYSQL: Final[Mapping[str, str]] = {"innodb-flush-log-at-trx-commit": "1", "innodb-doublewrite": "1"}
DURABLE_POSTGRESQL: Final[Mapping[str, str]] = {"synchronous_commit": "on"}


def restart_of(database: Database) -> Callable[[], None] | None:
    """What restarts the server of a database, which is on this machine; None where there is no server."""
    restart = {"postgresql": _crash_postgresql, "mariadb": _kill_mysql}.get(database.name)
    if restart is None:
        return None
    engine = create_engine(database.url, poolclass=NullPool)
    return lambda: restart(engine)


def _crash_postgresql(engine: Engine) -> None:
    """A session that is killed takes all others with it; the server then starts anew, from its log."""
    witness = engine.connect()
    with engine.connect() as connection:
        victim: Any = connection.connection.dbapi_connection
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        connection.invalidate()
    _wait_for(lambda: not _answers(witness))
    witness.invalidate()
    witness.close()
    _wait_until_back(engine)


def _kill_mysql(engine: Engine) -> None:
    """Its keeper starts it anew."""
    with engine.connect() as connection:
        pid_file = Path(str(connection.scalar(text("SELECT @@pid_file"))))
    server = int(pid_file.read_text())
    os.kill(server, signal.SIGKILL)
    _wait_for(lambda: pid_file.read_text().strip() not in ("", str(server)))
    _wait_until_back(engine)


def _wait_until_back(engine: Engine) -> None:
    def is_back() -> bool:
        with suppress(DBAPIError), engine.connect():
            return True
        return False

    _wait_for(is_back)


def _answers(connection: Any) -> bool:
    try:
        connection.execute(text("SELECT 1"))
    except DBAPIError:
        return False
    return True


def _wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
