"""An output that cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from db_dedup.cli.demo import fill
from db_dedup.sample import Sample
from tests.cli.conftest import succeed, write_settings
from tests.servers import Database

FULL = Path("/dev/full")


@pytest.mark.parametrize(
    "command", [("pairs", "petitions", "--format", "csv"), ("groups", "petitions"), ("status",), ("--help",)]
)
def test_an_output_that_is_full(sqlite_database: Database, sample: Sample, command: tuple[str, ...]) -> None:
    with sqlite_database.engine.begin() as connection:
        fill(connection, sample)
    write_settings(sqlite_database)
    succeed("upgrade")
    succeed("scan", "petitions")
    root = str(Path(__file__).parents[2])
    with FULL.open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "db_dedup.cli", *command],
            check=False, stdout=stdout, stderr=subprocess.PIPE, text=True, env={"PYTHONPATH": root},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "error: cannot use the output: No space left on device\n"
