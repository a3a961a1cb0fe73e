"""The migrations that come with this version, in their order."""

from functools import lru_cache
from pathlib import Path

from alembic.runtime.migration import RevisionStep
from alembic.script import ScriptDirectory

from db_dedup.errors import SchemaMissingError, UnknownNameError

BASE = "base"
"""The state before the first migration."""


def head_revision() -> str:
    """Return the revision that this version of the program needs."""
    return known_revisions()[0]


def known_revisions() -> list[str]:
    """Return all revisions, the newest first."""
    return [script.revision for script in _scripts().walk_revisions()]


def steps_up(current: str | None) -> list[RevisionStep]:
    """Return the steps from a revision (None: from nothing) to the newest.

    Raises:
        SchemaMissingError: the revision is none of ours.
    """
    return _scripts()._upgrade_revs("head", _check_current(current))  # type: ignore[arg-type]


def steps_down(current: str, target: str) -> list[RevisionStep]:
    """Return the steps from a revision back to an older one, or to BASE.

    Raises:
        SchemaMissingError: the current revision is none of ours.
        UnknownNameError: the target is none.
    """
    targets = [*known_revisions(), BASE]
    if target not in targets:
        raise UnknownNameError("revision", target, targets)
    return _scripts()._downgrade_revs(target, _check_current(current))


def _check_current(revision: str | None) -> str | None:
    if revision is not None and revision not in known_revisions():
        raise SchemaMissingError(
            "the tables are of revision {revision!r}, which this version does not know: upgrade db-dedup",
            revision=revision,
        )
    return revision


@lru_cache(maxsize=1)
def _scripts() -> ScriptDirectory:
    package = Path(__file__).parent.parent
    shipped = package / "migrations"
    # A source tree keeps them beside the package.
    return ScriptDirectory(shipped if shipped.is_dir() else package.parent / "migrations")
