"""The files of `examples/deploy` name what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from db_dedup.cli.commands import COMMANDS
from db_dedup.config import ServerSettings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "examples" / "deploy"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd on this machine")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "db-dedup.service").read_text(encoding="utf-8")
    program = "/srv/dedup/venv/bin/db-dedup"
    assert f"ExecStart={program} run\n" in unit
    here = tmp_path / "db-dedup.service"
    here.write_text(unit.replace(program, sys.executable), encoding="utf-8")
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(here)], capture_output=True, text=True, check=False
    )
    assert "db-dedup.service" not in found.stderr


def test_the_container_has_extras_and_commands_that_exist() -> None:
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.search(r"/source\[([a-z,]+)\]", lines)
    assert extras
    assert set(extras[1].split(",")) <= project["optional-dependencies"].keys()
    command = re.search(r'CMD \["(\w+)"\]', lines)
    assert command
    assert command[1] in COMMANDS
    assert f"EXPOSE {ServerSettings().port}\n" in lines
