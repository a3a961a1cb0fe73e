"""Nothing is compiled while the worker keeps others waiting."""

import subprocess
import sys
from typing import Final

from tests.servers import Database
from tests.worker.conftest import is_right, write
from tests.worker.watched import Watched

WITH_AND_WITHOUT_BANDS: Final = (0, 2)
DRAIN: Final = """
import gc
import sys
from numba.core.dispatcher import Dispatcher
from db_dedup import Deduplicator
from db_dedup.jobs.worker.change_batches import ChangeBatches

def compiled():
    return {str(d.py_func): len(d.signatures) for d in gc.get_objects() if isinstance(d, Dispatcher)}

handle = ChangeBatches.handle

def watched(*arguments, **more):
    before = compiled()
    batch = handle(*arguments, **more)
    print({name for name, count in compiled().items() if count > before.get(name, 0)} or "nothing")
    return batch

ChangeBatches.handle = watched
print(Deduplicator(sys.argv[1], sys.argv[2]).worker().step().changes)
"""


def test_the_first_batch_compiles_nothing(sqlite_database: Database) -> None:
    for number in WITH_AND_WITHOUT_BANDS:
        watched = Watched.make(sqlite_database.engine, number)
        write(watched, range(9))
        command = [sys.executable, "-c", DRAIN, sqlite_database.url, watched.letters.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        compiled, changes = done.stdout.splitlines()
        assert compiled == "nothing"
        assert int(changes) > 0
        assert is_right(watched)
