"""The migrations that come with this version, in their order: the names of their files begin with it."""

from pathlib import Path
from typing import Final

BASE: Final = "base"
"""The state before the first migration."""


def head_revision() -> str:
    """Return the revision that this version of the program needs."""
    return known_revisions()[0]


def known_revisions() -> list[str]:
    """Return all revisions, the newest first."""
    files = (migrations_folder() / "versions").glob("*.py")
    return sorted((file.name.partition("_")[0] for file in files if file.name[0].isdigit()), reverse=True)


def migrations_folder() -> Path:
    """Return the folder of the migrations; a source tree keeps them beside the package."""
    package = Path(__file__).parent.parent
    shipped = package / "migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"
