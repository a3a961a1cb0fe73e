"""Petitions that were scanned, what the views say of them, and all that our tables hold."""

from __future__ import annotations

from tests.cli.conftest import folder, petitions, scanned, scanned_file, sqlite_petitions
from tests.interrupted.conftest import sample

__all__ = ["folder", "petitions", "sample", "scanned", "scanned_file", "sqlite_petitions"]
