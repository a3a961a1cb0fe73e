"""The rules of the house that no other tool holds."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ["db_dedup", "tests", "migrations", "benchmarks", "examples"]
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LONGEST_FILE = 400


def test_no_file_is_too_long() -> None:
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert [
        f"{file.relative_to(ROOT)}: {lines} lines" for file, lines in lengths.items() if lines > LONGEST_FILE
    ] == []


def test_every_module_says_what_it_is_for() -> None:
    modules = [file for file in FILES if file.is_relative_to(ROOT / "db_dedup")]
    assert [file for file in modules if not ast.get_docstring(ast.parse(file.read_bytes()))] == []


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs/decisions/dependencies.md").read_text(encoding="utf-8")
    explained = re.findall(r"^- \*\*(.+?)\*\*", reasons, flags=re.MULTILINE)
    build = DECLARED["build-system"]["requires"]
    assert {name_of_package(name) for name in explained} == installed_packages() | packages(build)


def test_every_dependency_is_pinned() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {name_of_package(pin) for pin in pins if "==" in pin}
    assert installed_packages() <= pinned


def installed_packages() -> set[str]:
    """Return the names of what the package and its extras ask for."""
    project = DECLARED["project"]
    extras = project["optional-dependencies"].values()
    return packages(chain(project["dependencies"], *extras)) - {project["name"]}


def packages(requirements: Iterable[str]) -> set[str]:
    return {name_of_package(requirement) for requirement in requirements}


def name_of_package(requirement: str) -> str:
    """Return the name in a requirement as an index compares it: without extras and releases."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement)[0]).lower()
