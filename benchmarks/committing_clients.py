"""Commits a second of clients that insert one row each, by PostgreSQL's own pgbench: Python would be the slower."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, text

CLIENTS: Final = 8

_THREADS: Final = 2
_BINARIES: Final = text("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
_INSERT: Final = "INSERT INTO {table} (title, content, created_at) VALUES ('{title}', '{content}', now());\n"
_TITLE: Final = "关于小区停水三天无人处理的投诉"


def commits_a_second(engine: Engine, table: str, seconds: int) -> float:
    """Let the clients insert into a table of petitions for some seconds.

    Raises:
        FileNotFoundError: the server has come without pgbench.
        subprocess.CalledProcessError: pgbench failed.
    """
    with engine.connect() as connection:
        binaries = Path(connection.execute(_BINARIES).scalar_one())
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "insert.sql"
        script.write_text(_INSERT.format(table=table, title=_TITLE, content=_TITLE * 12), encoding="utf-8")
        url = engine.url
        command = [
            binaries / "pgbench", "--no-vacuum", "--protocol=prepared", f"--file={script}",
            f"--client={CLIENTS}", f"--jobs={_THREADS}", f"--time={seconds}",
            f"--host={url.query['host']}", f"--username={url.username}", str(url.database),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return float(found[1])
