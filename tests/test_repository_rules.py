"""The rules of this repository that no other tool checks."""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from db_dedup.flow.compare.measures import MEASURES

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


def test_measures_are_named_in_their_registry_alone() -> None:
    """But for the presets, which choose one, and the presets of former releases.

    The methods of other papers (db_dedup/methods) have names of their own.
    """
    allowed = {"flow/compare/measures.py", "config/rule.py", "schema/definitions.py"}
    names = re.compile(rf"[\"']({'|'.join(MEASURES)}|char_|word_)[\"']")
    found = {
        str(file.relative_to(ROOT / "db_dedup"))
        for file in FILES
        if file.is_relative_to(ROOT / "db_dedup") and names.search(file.read_text(encoding="utf-8"))
    }
    assert {file for file in found if not file.startswith("methods/")} <= allowed


def test_every_dialect_is_held_by_the_import_contracts() -> None:
    registered = DECLARED["project"]["entry-points"]["db_dedup.dialects"].values()
    folders = {entry_point.partition(":")[0] for entry_point in registered}
    contracts = {contract["name"]: contract for contract in DECLARED["tool"]["importlinter"]["contracts"]}
    assert set(contracts["Dialects are independent of each other"]["modules"]) == folders
    assert set(contracts["Dialects are found by name, never imported"]["forbidden_modules"]) == folders


def test_messages_are_constant_templates() -> None:
    """Values go into named fields; a text of a driver may stand alone, in a name.

    Python's own errors have no fields. Nobody but a programmer reads them, or a field of another message.
    """
    made = []
    for file in FILES:
        if file.is_relative_to(ROOT / "db_dedup"):
            for call in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(call, ast.Call) and takes_a_template(call.func) and call.args:
                    pieces = alternatives(call.args[0])
                    if any(isinstance(piece, ast.JoinedStr | ast.BinOp) for piece in pieces):
                        made.append(f"{file.relative_to(ROOT)}:{call.lineno}")
    assert made == []


def takes_a_template(function: ast.expr) -> bool:
    """Return whether a call of the function makes one of our errors or prints a line."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    is_error = name.endswith("Error") and not hasattr(builtins, name)
    return is_error or name in {"say", "_say", "ended", "family", "kind"}


def alternatives(expression: ast.expr) -> list[ast.expr]:
    """Return the expressions of which a condition chooses one, or the only one."""
    if isinstance(expression, ast.IfExp):
        return alternatives(expression.body) + alternatives(expression.orelse)
    return [expression]


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
