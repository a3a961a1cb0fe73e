"""Make, change and remove what exists once per database.

It uses Alembic's scripts and version table, but no env.py. The proxies of an env.py are global to the
process: they would break a host that calls `upgrade` from a migration of its own, and two threads that
upgrade at once. Here a migration gets `op` and the namespace as arguments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from sqlalchemy import Connection, Table, inspect, literal, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.schema import DropTable

from db_dedup.dialects import dialect_for, dialect_names
from db_dedup.dialects.stored_names import stored_as
from db_dedup.errors import ConfigError, InvalidArgumentError, SchemaMissingError, UnknownNameError
from db_dedup.records.names import Namespace
from db_dedup.schema.indexes import make_missing_indexes
from db_dedup.schema.own_names import own_name_test, own_names
from db_dedup.schema.revisions import BASE, head_revision
from db_dedup.schema.schema_ddl import CreateOurSchema, DropOurSchema, version_table
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import FIXED_VIEWS, CreateView, DropView
from db_dedup.translation import Phrase

IncludeName = Callable[[str | None, str, Mapping[Any, str | None]], bool]


def upgrade(connection: Connection, namespace: Namespace) -> None:
    """Make or update our schema, tables and fixed views.

    If they are up to date, only fixed views that somebody has dropped and indexes that a scan has put off are
    made.

    Runs in the connection's transaction, which the caller commits; MySQL and MariaDB commit at once. Of two
    upgrades at a time one waits for the other.

    Raises:
        SchemaMissingError: the tables are of a revision that this version does not know, or of none although
            they hold rows.
        ConfigError: tables of somebody else's have our names.
        DatabaseUnavailableError: another upgrade takes too long.
    """
    from db_dedup.schema.alembic_runs import run_migrations, steps_up  # noqa: PLC0415 - see there

    with dialect_for(connection).schema_lock(connection, namespace):
        current = current_revision(connection, namespace)
        if current is None:
            _clear_the_way(connection, namespace)
        if namespace.schema:
            connection.execute(CreateOurSchema(namespace.schema))
        run_migrations(connection, namespace, steps_up(current))
        _restore_views(connection, namespace)
        # A first scan that was killed may have left none.
        make_missing_indexes(connection, our_tables(namespace))


def upgrade_sql(database: str, namespace: Namespace) -> str:
    """Return the SQL that `upgrade` would run on an empty database, to be run by hand.

    Args:
        database: its URL, or the name of a dialect. No connection is made.
        namespace: where our names go.

    Raises:
        UnknownNameError: no such dialect is known here.
    """
    from db_dedup.schema.alembic_runs import steps_up, write_migrations  # noqa: PLC0415 - see there

    buffer = StringIO()
    dialect = _dialect_name(database)
    write_migrations(dialect, namespace, steps_up(None), buffer)
    return buffer.getvalue()


def downgrade(connection: Connection, namespace: Namespace, revision: str) -> None:
    """Go back to an older revision; "base" leaves nothing of ours.

    The views of watched tables must be gone before. The caller commits.

    Raises:
        UnknownNameError: there is no such revision.
    """
    from db_dedup.schema.alembic_runs import run_migrations, steps_down  # noqa: PLC0415 - see there

    with dialect_for(connection).schema_lock(connection, namespace):
        current = current_revision(connection, namespace)
        if current is None:
            return
        steps = steps_down(current, revision)
        if revision != BASE and current == head_revision():
            # An earlier version would not make those that a killed scan has put off.
            make_missing_indexes(connection, our_tables(namespace))
        run_migrations(connection, namespace, steps)
        if revision == BASE:
            _drop_home(connection, namespace)


def uninstall(connection: Connection, namespace: Namespace, view_names: Iterable[str] = ()) -> list[str]:
    """Drop everything that `upgrade` made, in whatever state it is; do nothing where `upgrade` never ran.

    Triggers on the user's tables are not of this kind: detach the tables first. The caller commits.

    Args:
        connection: to the database.
        namespace: where our names are. The schema goes too if we made it and it is empty then.
        view_names: the views of watched tables, without their schema.

    Returns:
        The names of the views and tables that were there and are gone.

    Raises:
        ConfigError: a table of somebody else's has one of our names; nothing has been dropped then.
    """
    with dialect_for(connection).schema_lock(connection, namespace):
        if not is_installed(connection, namespace):
            return []
        before = _relations(connection, namespace)
        for name in view_names:
            connection.execute(DropView(name, namespace.schema))
        _drop_tables(connection, namespace)
        _drop_home(connection, namespace)
        return sorted(before - _relations(connection, namespace))


def current_revision(connection: Connection, namespace: Namespace) -> str | None:
    """Return the revision of our tables in this database; None where there are none."""
    revisions = _stored_revisions(connection, namespace)
    return revisions[0] if revisions else None


def _stored_revisions(connection: Connection, namespace: Namespace) -> Sequence[str]:
    """Return what our version table holds: one revision, or nothing; Alembic itself need not be imported."""
    version = version_table(namespace)
    if not inspect(connection).has_table(version.name, version.schema):
        return ()
    return connection.scalars(select(version.c.version_num)).all()


def is_installed(connection: Connection, namespace: Namespace) -> bool:
    """Return whether anything of ours exists.

    A version table without any of our tables belongs to another program, whatever revision it names. Only
    where DDL cannot be rolled back may an empty one be left of an upgrade that failed.

    Raises:
        ConfigError: a table of somebody else's has one of our names.
    """
    relations = _relations(connection, namespace)
    if str(version_table(namespace).name) not in relations:
        return False
    if _tables_there(connection, namespace, relations):
        return True
    may_be_left = dialect_for(connection).capabilities.commits_ddl
    return may_be_left and not (_stored_revisions(connection, namespace) or relations & own_names(namespace))


def installed_names(
    connection: Connection, namespace: Namespace, view_names: Iterable[str] = ()
) -> list[str]:
    """Return the names of what `uninstall` would drop."""
    if not is_installed(connection, namespace):
        return []
    ours = own_names(namespace) | {str(version_table(namespace).name)}
    views = {*map(stored_as(connection), view_names)}
    views.intersection_update(inspect(connection).get_view_names(namespace.schema))
    return sorted((ours & _relations(connection, namespace)) | views)


def missing_tables(connection: Connection, namespace: Namespace) -> list[str]:
    """Return the names of our tables that should exist and do not."""
    tables = our_tables(namespace).metadata.tables.values()
    return sorted({str(table.name) for table in tables} - _relations(connection, namespace))


def missing_views(connection: Connection, namespace: Namespace) -> list[str]:
    """Return the names of the fixed views that should exist and do not; `upgrade` makes them."""
    there = _relations(connection, namespace)
    return [name for name in map(namespace.name, FIXED_VIEWS) if name not in there]


def include_name(namespace: Namespace) -> IncludeName:
    """Return a function for the `include_name` option of a host's Alembic: its autogenerate then ignores
    us."""
    if not isinstance(namespace, Namespace):
        raise InvalidArgumentError(
            "namespace should be the namespace of a Database, not a {given_type}",
            given_type=type(namespace).__name__,
        )
    is_own = own_name_test(namespace)

    def include(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
        if type_ == "schema":
            return name is None or name != namespace.schema
        if type_ != "table" or name is None:
            return True
        # Alembic calls the default schema None.
        is_our_schema = (parent_names.get("schema_name") or "public") == (namespace.schema or "public")
        return not (is_our_schema and is_own(name))

    return include


def _dialect_name(database: str) -> str:
    try:
        name = make_url(database).get_backend_name() if "://" in database else database
    except ArgumentError:
        raise ConfigError("this is no database URL: postgresql://user@host/name") from None
    if name not in dialect_names():
        raise UnknownNameError(Phrase("database"), name, dialect_names())
    return name


def _relations(connection: Connection, namespace: Namespace) -> set[str]:
    """Return the names of all tables and views where ours are; ours as we write them."""
    inspector, stored = inspect(connection), stored_as(connection)
    own = {stored(name): name for name in (*own_names(namespace), str(version_table(namespace).name))}
    there = (*inspector.get_table_names(namespace.schema), *inspector.get_view_names(namespace.schema))
    return {own.get(name, name) for name in there}


def _restore_views(connection: Connection, namespace: Namespace) -> None:
    missing = missing_views(connection, namespace)
    for base, query in FIXED_VIEWS.items():
        if namespace.name(base) in missing:
            connection.execute(
                CreateView(namespace.name(base), namespace.schema, query(our_tables(namespace)))
            )


def _clear_the_way(connection: Connection, namespace: Namespace) -> None:
    """Drop the empty tables that an upgrade left which failed where DDL cannot be rolled back.

    Where DDL can be rolled back, an upgrade that fails leaves nothing: a version table that names no
    revision is somebody else's, or was emptied by hand. Our views are made after our tables and dropped
    before them, so views without tables are somebody else's.
    """
    may_be_left = dialect_for(connection).capabilities.commits_ddl
    relations = _relations(connection, namespace)
    version = str(version_table(namespace).name)
    taken = sorted(relations & own_names(namespace))
    if version not in relations and not taken:
        return
    if version not in relations or not (taken or may_be_left):
        raise _not_ours(taken[0] if taken else version)
    there = _tables_there(connection, namespace, relations)
    if taken and not there:
        raise _not_ours(taken[0])
    for table in there:
        if not may_be_left or _has_rows(connection, table):
            raise SchemaMissingError(
                "{version_table} names no revision, although {table} is there, so nothing is changed: "
                "write the revision that made our tables into it (the newest is {newest}), or run "
                "`db-dedup uninstall` to drop them",
                version_table=version,
                table=table.name,
                newest=head_revision(),
            )
    _drop_tables(connection, namespace)


def _tables_there(connection: Connection, namespace: Namespace, relations: set[str]) -> list[Table]:
    """Return those of our tables that exist.

    Our names are no proof: without a schema or prefix of our own, a host's tables may have them. A table is
    ours if it has the columns that ours has had in every revision: what was added later has a default.

    Raises:
        ConfigError: a table of somebody else's has one of our names.
    """
    tables = our_tables(namespace).metadata.tables.values()
    there = [table for table in tables if str(table.name) in relations]
    for table in there:
        found = {column["name"] for column in inspect(connection).get_columns(table.name, table.schema)}
        if any(not (c.name in found or c.nullable or c.server_default) for c in table.columns):
            raise _not_ours(str(table.name))
    return there


def _not_ours(relation: str) -> ConfigError:
    return ConfigError(
        "{relation} is there already and was not made by db_dedup: "
        "set another `schema` or `prefix` under [database]",
        relation=relation,
    )


def _has_rows(connection: Connection, table: Table) -> bool:
    return connection.execute(select(literal(1)).select_from(table).limit(1)).first() is not None


def _drop_tables(connection: Connection, namespace: Namespace) -> None:
    for base in FIXED_VIEWS:
        connection.execute(DropView(namespace.name(base), namespace.schema))
    first, *others = our_tables(namespace).metadata.tables.values()
    connection.execute(DropTable(first, if_exists=True))
    # MariaDB and MySQL commit each DROP, so that an error here leaves some of the tables. Without a revision
    # these are known to be incomplete, and the next `uninstall` drops them.
    connection.execute(version_table(namespace).delete())
    for table in others:
        connection.execute(DropTable(table, if_exists=True))


def _drop_home(connection: Connection, namespace: Namespace) -> None:
    connection.execute(DropTable(version_table(namespace), if_exists=True))
    if namespace.schema:
        connection.execute(DropOurSchema(namespace.schema))
