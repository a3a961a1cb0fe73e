"""Making, changing and removing what exists once per database.

Alembic's scripts and version table, without its env.py: that works through module-wide proxies, which would break
a host that calls `upgrade` from a migration of its own, or two threads that upgrade at once. A migration here gets
`op` and the namespace as arguments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, Final

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.schema import DropTable

from db_dedup.errors import ConfigError, SchemaMissingError, UnknownNameError
from db_dedup.progress import NullProgress, Progress
from db_dedup.schema.home import CreateOurSchema, DropOurSchema, version_table
from db_dedup.schema.locks import COMMITS_DDL, schema_lock
from db_dedup.schema.names import Namespace, view_name
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import FIXED_VIEWS, DropView

IncludeName = Callable[[str | None, str, Mapping[str, Any]], bool]

_DIALECTS: Final = ("mariadb", "mysql", "postgresql", "sqlite")


def upgrade(connection: Connection, namespace: Namespace, progress: Progress | None = None) -> None:
    """Make or update our schema, tables and fixed views; nothing is done where they are up to date.

    Runs in the connection's transaction, which the caller commits; MySQL and MariaDB commit each step at once.
    Two at a time wait for each other.

    Raises:
        SchemaMissingError: the tables are at a revision that this version does not know.
        DatabaseUnavailableError: another upgrade takes too long.
    """
    progress = progress or NullProgress()
    with schema_lock(connection, namespace):
        current = current_revision(connection, namespace)
        if (
            current is None
            and connection.dialect.name in COMMITS_DDL
            and _is_installed(connection, namespace)
        ):
            # An upgrade broke off here, and what it had made could not be rolled back.
            _drop_tables(connection, namespace)
        if namespace.schema:
            connection.execute(CreateOurSchema(namespace.schema))
        steps = _steps_up(current)
        progress.start("upgrade", len(steps))
        _run(_online(connection, namespace, steps, progress), namespace)
        progress.finish()


def upgrade_sql(database: str, namespace: Namespace) -> str:
    """The SQL that `upgrade` would run on an empty database, to be run by hand.

    Args:
        database: its URL, or the name of a dialect. No connection is made.
        namespace: where our names go.

    Raises:
        UnknownNameError: no such dialect is known here.
    """
    buffer = StringIO()
    dialect = _dialect_name(database)
    steps = _steps_up(None)
    context = MigrationContext.configure(
        dialect_name=dialect,
        # Else the percent signs in a name come out doubled, as for a driver.
        dialect_opts={"paramstyle": "named"},
        opts={
            **_options(namespace),
            "as_sql": True,
            "literal_binds": True,
            "output_buffer": buffer,
            "transactional_ddl": dialect not in COMMITS_DDL,
            "fn": lambda *_: steps,
        },
    )
    with context.begin_transaction():
        if namespace.schema:
            context.execute(CreateOurSchema(namespace.schema))
        _run(context, namespace)
    return buffer.getvalue()


def downgrade(connection: Connection, namespace: Namespace, revision: str) -> None:
    """Go back to an older revision; "base" leaves nothing of ours. Views of watched tables must be gone before.

    Raises:
        UnknownNameError: there is no such revision.
    """
    if revision != "base" and revision not in _known_revisions():
        raise UnknownNameError("revision", revision, ["base", *_known_revisions()])
    with schema_lock(connection, namespace):
        current = current_revision(connection, namespace)
        if current is None:
            return
        steps = _scripts()._downgrade_revs(revision, _check_known(current))
        _run(_online(connection, namespace, steps, NullProgress()), namespace)
        if revision == "base":
            _drop_home(connection, namespace)


def uninstall(connection: Connection, namespace: Namespace, view_names: Iterable[str] = ()) -> None:
    """Drop everything that `upgrade` made, whatever its state, and nothing where it never ran.

    Args:
        connection: the caller commits.
        namespace: where our names are. The schema goes too if we made it and it is empty then.
        view_names: the views of watched tables, without their schema.

    Triggers on the user's tables are not of this kind: detach the tables first.
    """
    with schema_lock(connection, namespace):
        if not _is_installed(connection, namespace):
            return
        for name in view_names:
            connection.execute(DropView(name, namespace.schema))
        _drop_tables(connection, namespace)
        _drop_home(connection, namespace)


def current_revision(connection: Connection, namespace: Namespace) -> str | None:
    """The revision of our tables in this database; None where there are none."""
    context = MigrationContext.configure(connection, opts=_options(namespace))
    return context.get_current_revision()


def head_revision() -> str:
    """The revision that this version of the program needs."""
    head = _scripts().get_current_head()
    assert head is not None  # noqa: S101 - the scripts come with the package
    return head


def is_current(connection: Connection, namespace: Namespace) -> bool:
    """Our tables are there, at the revision that this version needs."""
    return current_revision(connection, namespace) == head_revision()


def include_name(namespace: Namespace) -> IncludeName:
    """A function for the `include_name` option of a host's Alembic, which hides what is ours from autogenerate."""
    ours = {table.name for table in our_tables(namespace).metadata.tables.values()}
    ours |= {version_table(namespace).name, *(namespace.name(base) for base in FIXED_VIEWS)}
    own_views = view_name(namespace, "", None, limit_counts_bytes=False)

    def include(name: str | None, type_: str, parent_names: Mapping[str, Any]) -> bool:
        if type_ == "schema":
            return name is None or name != namespace.schema
        if type_ != "table" or name is None:
            return True
        # Alembic calls the default schema None; ours may be named though it is the default.
        in_our_schema = parent_names.get("schema_name") in (None, namespace.schema)
        return not (in_our_schema and (name in ours or name.startswith(own_views)))

    return include


def _online(
    connection: Connection, namespace: Namespace, steps: Sequence[RevisionStep], progress: Progress
) -> MigrationContext:
    return MigrationContext.configure(
        connection,
        opts={
            **_options(namespace),
            "fn": lambda *_: steps,
            "on_version_apply": (lambda **_: progress.advance(1),),
        },
    )


def _run(context: MigrationContext, namespace: Namespace) -> None:
    context.run_migrations(op=Operations(context), namespace=namespace)


def _options(namespace: Namespace) -> dict[str, Any]:
    return {"version_table": version_table(namespace).name, "version_table_schema": namespace.schema}


def _steps_up(current: str | None) -> list[RevisionStep]:
    return _scripts()._upgrade_revs("head", _check_known(current))


def _check_known(current: str | None) -> Any:
    if current is not None and current not in _known_revisions():
        raise SchemaMissingError(
            f"the tables are at revision {current!r}, which this version does not know: upgrade db-dedup"
        )
    return current


def _known_revisions() -> list[str]:
    return [script.revision for script in _scripts().walk_revisions()]


@lru_cache(maxsize=1)
def _scripts() -> ScriptDirectory:
    package = Path(__file__).parent.parent
    shipped = package / "migrations"
    # A source tree keeps them beside the package.
    return ScriptDirectory(shipped if shipped.is_dir() else package.parent / "migrations")


def _dialect_name(database: str) -> str:
    try:
        name = make_url(database).get_backend_name() if "://" in database else database
    except ArgumentError:
        raise ConfigError("this is no database URL: postgresql://user@host/name") from None
    if name not in _DIALECTS:
        raise UnknownNameError("database", name, _DIALECTS)
    return name


def _is_installed(connection: Connection, namespace: Namespace) -> bool:
    return inspect(connection).has_table(version_table(namespace).name, schema=namespace.schema)


def _drop_tables(connection: Connection, namespace: Namespace) -> None:
    for base in FIXED_VIEWS:
        connection.execute(DropView(namespace.name(base), namespace.schema))
    for table in our_tables(namespace).metadata.tables.values():
        connection.execute(DropTable(table, if_exists=True))


def _drop_home(connection: Connection, namespace: Namespace) -> None:
    connection.execute(DropTable(version_table(namespace), if_exists=True))
    if namespace.schema:
        connection.execute(DropOurSchema(namespace.schema))
