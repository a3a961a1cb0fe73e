"""Imported by the server of worker processes alone: loads what a first batch would have to load each time."""

import threading
from tempfile import TemporaryDirectory

from sqlalchemy import create_engine

from db_dedup.jobs.worker.change_worker import ChangeWorker
from tests.worker.conftest import write
from tests.worker.watched import Watched

with TemporaryDirectory() as folder:
    engine = create_engine(f"sqlite:///{folder}/warm.db")
    watched = Watched.make(engine, 0)
    write(watched, range(9))
    ChangeWorker([watched.dedup.worker()]).run(threading.Event(), drain=True)
    engine.dispose()
