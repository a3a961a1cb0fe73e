"""Finds near-duplicate rows in relational tables and keeps the answer as SQL views.

>>> from db_dedup import Deduplicator, Text, Value  # doctest: +SKIP

The public names are listed once, in `__init__.pyi`, as imports: type checkers follow them. Here they are read
from that file, and each is imported when it is first asked for, so that `import db_dedup` itself stays light.
"""

import ast
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"


def _public_names() -> dict[str, str]:
    """Return name -> the module that defines it, from the imports of the stub."""
    stub = ast.parse(get_data(__name__, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


_MODULES = _public_names()
__all__ = sorted(_MODULES)  # noqa: PLE0605 - type checkers read the stub


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
