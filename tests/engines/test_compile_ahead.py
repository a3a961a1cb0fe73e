"""The process that compiles the kernels of the matching while rows are fingerprinted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from db_dedup.engines.embedded.compile_ahead import CompilingAhead, match_two_rows, pack_two_rows

MATCH = """
from db_dedup.engines.embedded.compile_ahead import CompilingAhead, match_two_rows, pack_two_rows
from db_dedup.progress import when_compiling
with CompilingAhead() as compiling:
    assert compiling._process is not None
    compiling.wait()
when_compiling(lambda: print("compiling"))
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
def test_the_process_leaves_all_kernels_of_the_matching_on_the_disk(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert subprocess.check_output([sys.executable, "-c", MATCH], env=environment, text=True) == ""
