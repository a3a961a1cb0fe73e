"""The process that compiles the kernels of the matching while rows are fingerprinted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from db_dedup.engines.embedded.compile_ahead import CompilingAhead, match_two_rows, pack_two_rows

MATCH = """
import os
from db_dedup.engines.embedded.compile_ahead import CompilingAhead, match_two_rows, pack_two_rows
from db_dedup.progress import when_compiling
if ahead:
    with CompilingAhead() as compiling:
        compiling.wait()
def said(_):  # one is enough: to compile all takes a minute
    print("compiling", flush=True)
    os._exit(0)
when_compiling(said)
match_two_rows()
pack_two_rows()
"""


def test_no_process_starts_where_all_is_compiled() -> None:
    match_two_rows()
    pack_two_rows()
    with CompilingAhead() as compiling:
        assert compiling._process is None
        compiling.wait()


@pytest.mark.thorough
@pytest.mark.parametrize(("ahead", "said"), [(True, ""), (False, "compiling\n")])
def test_the_process_leaves_all_kernels_of_the_matching_on_the_disk(
    tmp_path: Path, ahead: bool, said: str
) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", f"ahead = {ahead}\n{MATCH}"]
    assert subprocess.check_output(command, env=environment, text=True) == said
