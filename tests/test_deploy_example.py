"""The files of `examples/deploy` name what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from db_dedup.cli.commands import COMMANDS
from db_dedup.config import ServerSettings
from tests.conftest import not_tested

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "examples" / "deploy"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        not_tested("the unit of systemd (there is no systemd-analyze: install systemd)")
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


def test_what_the_container_copies_can_be_installed(tmp_path: Path) -> None:
    """And nothing else is copied, such as settings, tokens or data in the folder of a checkout."""
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    source = tmp_path / "source"
    for line in re.findall(r"^COPY (.*)$", lines, re.MULTILINE):
        *copied, target = line.split()
        folder = tmp_path / target.removeprefix("/")
        for name in copied:
            assert name != "."
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, folder)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "db_dedup").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= names
    assert any(name.startswith("db_dedup/migrations/") for name in names)
