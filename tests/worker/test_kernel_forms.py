"""numba compiles a kernel once more for arrays of another kind: in a first check, or while a table is locked.

Once a worker is ready, every kernel has the one form that the worker and checks call.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import sys
from numba.core.registry import CPUDispatcher
from sqlalchemy import create_engine, text
from db_dedup import Deduplicator, Text
from db_dedup.cli.demo import fill
from db_dedup.flow._compiled import is_kept
from db_dedup.sample import generate_petitions
from db_dedup.store import set_memory

set_memory._MISSES_BEFORE = 1  # sets are read from the index of a small table, too
engine = create_engine(sys.argv[1])
with engine.begin() as connection:
    fill(connection, generate_petitions(600, seed=1))
dedup = Deduplicator(engine, "petitions", {"title": Text(), "content": Text()}, order="created_at")
dedup.upgrade()
dedup.attach()
dedup.scan()
with engine.begin() as connection:
    connection.execute(text("UPDATE petitions SET content = content || '。急' WHERE id < 200"))
    records = [
        {"title": row.title, "content": row.content + "谢谢"}
        for row in connection.execute(text("SELECT * FROM petitions WHERE content IS NOT NULL LIMIT 50"))
    ]
dedup.make_ready()
worker = dedup.worker(50)
while worker.step():
    pass
assert any(map(dedup.check, records))
dedup.check_many(records)
modules = [module for name, module in list(sys.modules.items()) if name.startswith("db_dedup.flow")]
kernels = {one for module in modules for one in vars(module).values() if isinstance(one, CPUDispatcher)}
forms = {(one.__module__, one.__name__): len(one.overloads) for one in kernels if is_kept(one)}
assert forms["db_dedup.flow.compare._set_kernels", "compare"]
assert forms["db_dedup.flow.compare.kernels", "confirm_pairs"]
print(*sorted(name for name, count in forms.items() if count > 1))
"""


def test_each_kernel_has_one_form(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path}/petitions.db"]
    assert subprocess.check_output(command, cwd=ROOT, text=True) == "\n"
