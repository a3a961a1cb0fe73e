"""What the program knows of a database stands in its dialect's folder and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import db_dedup
from db_dedup.dialects import dialect_names, named_dialect

PACKAGE = Path(db_dedup.__file__).parent
FILES = [file for file in PACKAGE.rglob("*.py") if not file.is_relative_to(PACKAGE / "dialects")]
MAY_NAME = {
    "cli/commands.py": "the help of demo says what it makes",
    "cli/demo.py": "it makes a SQLite file, and shows commands with its URL",
    "cli/file.py": "the help of an option, which makes a SQLite file",
    "cli/sql.py": "the help of an option: accounts are written differently",
    "frames/sheet_duplicates.py": "rows of a data frame are compared in a SQLite file",
    "schema/migrate.py": "an error shows a URL",
    "schema/tables.py": "SQLAlchemy has an option of a table for each dialect: the engine InnoDB",
}
"""Files with a text that has the name of a dialect in it, and why. None takes a decision by it."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_dialect_is_named_elsewhere(file: Path) -> None:
    tree, names = ast.parse(file.read_bytes()), dialect_names()
    named = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Constant) and node.value in names)
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy.dialects"))
    ]
    assert named == []


def test_only_texts_for_people_and_urls_have_the_name_of_a_dialect_in_them() -> None:
    names = dialect_names()
    found = {
        file.relative_to(PACKAGE).as_posix()
        for file in FILES
        if any(name in text.casefold() for text in texts_of(ast.parse(file.read_bytes())) for name in names)
    }
    assert found == MAY_NAME.keys()


def texts_of(tree: ast.Module) -> list[str]:
    """Return the texts of a module but its docstrings."""
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
    ]


@pytest.mark.parametrize("name", dialect_names())
def test_a_dialect_is_a_folder_of_its_own(name: str) -> None:
    folder = Path(*type(named_dialect(name)).__module__.split(".")[1:])
    assert (PACKAGE / folder / "__init__.py").is_file()
    assert folder.parent.name == "dialects"
