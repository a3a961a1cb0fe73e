"""Start the petition office with sample data, and the worker and schedule of db_dedup beside it.

    python examples/petition_office/start.py
    python examples/petition_office/start.py --url postgresql://user:password@host/office

Without a URL, it makes a SQLite file in the folder `data` beside this file. Petitions that are stored are
kept. It listens on this machine only, and ends at Ctrl-C or SIGTERM.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import uvicorn
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from office.app import make_app
from office.models import open_database
from office.sample import fill
from sqlalchemy import URL, Engine
from sqlalchemy.exc import SQLAlchemyError

from db_dedup import Database, DedupError, Deduplicator, Settings

FOLDER = Path(__file__).parent
SETTINGS = FOLDER / "dedup.toml"
SECONDS_TO_END = 30


def main() -> int:
    arguments = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        listener = socket.create_server(("127.0.0.1", arguments.port))
    except OSError as error:
        print(f"port {arguments.port}: {error.strerror}; choose another one with --port", file=sys.stderr)
        return 1
    try:
        with listener:
            prepare(arguments.url)
            return serve(arguments.url, listener)
    except KeyboardInterrupt:
        return 0
    except (CommandError, DedupError, SQLAlchemyError) as error:
        print(f"error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Start the petition office.")
    parser.add_argument("--url", default=os.environ.get("DB_DEDUP_URL"), help="of the database")
    parser.add_argument("--folder", type=Path, default=FOLDER / "data", help="of the SQLite file")
    parser.add_argument("--port", type=int, default=8100, help="on 127.0.0.1; 0 takes a free one")
    arguments = parser.parse_args()
    if not arguments.url:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        file = str(arguments.folder.resolve() / "office.db")
        arguments.url = URL.create("sqlite", database=file).render_as_string()
    return arguments


def prepare(url: str) -> None:
    """Make the tables, the sample and the answer of db_dedup, as far as they are not there yet."""
    engine = open_database(url)
    command.upgrade(alembic_config(engine), "head")
    filled = fill(engine)
    if filled:
        print(f"{filled} made-up petitions are stored", flush=True)
    database = Database(engine)
    dedup = Deduplicator(database, Settings.from_file(SETTINGS).watched("petitions"))
    dedup.upgrade()
    is_scanned = any(state.table == "petitions" and state.is_scanned for state in database.status())
    # Rows that were stored before there were triggers are not in the queue, so a scan must follow them.
    if dedup.attach() or not is_scanned:
        report = dedup.scan()
        print(f"scanned {report.rows} petitions: {report.groups} groups of similar ones", flush=True)
    engine.dispose()


def alembic_config(engine: Engine) -> Config:
    """The office's own migrations."""
    config = Config(attributes={"engine": engine})
    config.set_main_option("script_location", str(FOLDER / "office" / "migrations").replace("%", "%%"))
    return config


def serve(url: str, listener: socket.socket) -> int:
    """Serve the pages, with worker and schedule in a process beside, until one of both ends."""
    server = uvicorn.Server(uvicorn.Config(make_app(url), log_level="warning"))
    worker = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "db_dedup.cli", "run", "--config", str(SETTINGS)],
        env=os.environ | {"DB_DEDUP_URL": url},
    )

    def follow() -> None:
        worker.wait()
        server.should_exit = True

    threading.Thread(target=follow, daemon=True).start()
    try:
        print(
            f"the petition office: http://127.0.0.1:{listener.getsockname()[1]} (Ctrl-C ends it)", flush=True
        )
        server.run(sockets=[listener])
        return 1  # it ended because the worker did: signals raise
    finally:
        worker.terminate()
        worker.wait(SECONDS_TO_END)


if __name__ == "__main__":
    sys.exit(main())
