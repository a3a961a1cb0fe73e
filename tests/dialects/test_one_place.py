"""What the program knows of a database stands in its dialect's folder and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import db_dedup
from db_dedup.dialects import dialect_names, named_dialect

PACKAGE = Path(db_dedup.__file__).parent
FILES = [file for room in ("schema", "store") for file in (PACKAGE / room).rglob("*.py")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_schema_and_store_name_no_dialect(file: Path) -> None:
    tree, names = ast.parse(file.read_bytes()), dialect_names()
    named = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Constant) and node.value in names)
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy.dialects"))
    ]
    assert named == []


@pytest.mark.parametrize("name", dialect_names())
def test_a_dialect_is_a_folder_of_its_own(name: str) -> None:
    folder = Path(*type(named_dialect(name)).__module__.split(".")[1:])
    assert (PACKAGE / folder / "__init__.py").is_file()
    assert folder.parent.name == "dialects"
