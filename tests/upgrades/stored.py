"""Databases that former versions made, loaded into a fresh one."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

from sqlalchemy import NullPool, create_engine, make_url

from tests.servers import Database

FOLDER: Final = Path(__file__).parent
BETWEEN: Final = "\n-- next statement\n"
"""What stands between two statements; of PostgreSQL's, all are sent as one."""

STORED: Final = sorted(
    (folder.name, file.stem) for folder in FOLDER.glob("recipe_*") for file in folder.glob("*.sql")
)
"""(version, kind of database)."""


def load(version: str, kind: str, database: Database) -> None:
    """Fill an empty database of this kind with what a version made."""
    script = (FOLDER / version / f"{kind}.sql").read_text(encoding="utf-8")
    if database.name == "sqlite":
        connection = sqlite3.connect(make_url(database.url).database or "")
        connection.executescript(";\n".join(script.split(BETWEEN)))
        connection.close()
        return
    # A session of its own: the script changes settings.
    engine = create_engine(database.url, poolclass=NullPool)
    with engine.connect() as connected:
        session: Any = connected.connection.dbapi_connection
        with session.cursor() as cursor:
            for statement in script.split(BETWEEN):
                cursor.execute(statement)
        session.commit()
    engine.dispose()
