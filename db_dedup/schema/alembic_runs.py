"""Run migrations with Alembic.

Other modules import this one only when a migration runs: to import Alembic takes a tenth of the start of a
command.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TextIO

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from sqlalchemy import BigInteger, Column, Connection, PrimaryKeyConstraint, Table
from sqlalchemy.schema import SchemaItem

from db_dedup.dialects import named_dialect
from db_dedup.errors import SchemaMissingError, UnknownNameError
from db_dedup.records.names import Namespace
from db_dedup.schema.revisions import BASE, known_revisions, migrations_folder
from db_dedup.schema.schema_ddl import CreateOurSchema, version_table
from db_dedup.translation import Phrase


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
        raise UnknownNameError(Phrase("revision"), target, targets, most=len(targets))
    return _scripts()._downgrade_revs(target, _check_current(current))


def run_migrations(connection: Connection, namespace: Namespace, steps: Sequence[RevisionStep]) -> None:
    """Run the steps."""
    options = {**_options(namespace), "fn": lambda *_: steps}
    _run(MigrationContext.configure(connection, opts=options), namespace)


def write_migrations(
    dialect: str, namespace: Namespace, steps: Sequence[RevisionStep], output: TextIO
) -> None:
    """Write the SQL of the steps for a dialect; no connection is made."""
    context = MigrationContext.configure(
        dialect_name=dialect,
        # Else the percent signs in a name come out doubled, as for a driver.
        dialect_opts={"paramstyle": "named"},
        opts={
            **_options(namespace),
            "as_sql": True,
            "literal_binds": True,
            "output_buffer": output,
            "transactional_ddl": not named_dialect(dialect).capabilities.commits_ddl,
            "fn": lambda *_: steps,
        },
    )
    with context.begin_transaction():
        if namespace.schema:
            context.execute(CreateOurSchema(namespace.schema))
        _run(context, namespace)


def _run(context: MigrationContext, namespace: Namespace) -> None:
    context.run_migrations(op=_KeyedOperations(context), namespace=namespace)


class _KeyedOperations(Operations):
    """Alembic's operations, which make no table without a primary key where DDL commits at once.

    A server of MySQL may be set to refuse one (`sql_require_primary_key`), also where a later migration gives
    the table a key of its own.
    """

    def create_table(self, table_name: str, *columns: SchemaItem, **options: Any) -> Table:
        """Make a table; without a key it gets a column `id`."""
        has_key = any(
            getattr(item, "primary_key", False) or isinstance(item, PrimaryKeyConstraint) for item in columns
        )
        if named_dialect(self.get_context().dialect.name).capabilities.commits_ddl and not has_key:
            columns = (Column("id", BigInteger, primary_key=True), *columns)
        return super().create_table(table_name, *columns, **options)


def _options(namespace: Namespace) -> dict[str, Any]:
    return {"version_table": version_table(namespace).name, "version_table_schema": namespace.schema}


def _check_current(revision: str | None) -> str | None:
    if revision is not None and revision not in known_revisions():
        raise SchemaMissingError(
            "the tables are of revision {revision!r}, which this version does not know: upgrade db-dedup",
            revision=revision,
        )
    return revision


@lru_cache(maxsize=1)
def _scripts() -> ScriptDirectory:
    return ScriptDirectory(migrations_folder())
