"""What the user's database holds: its tables, their columns, and what identifies a row."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, inspect, types
from sqlalchemy import Dialect as SQLDialect
from sqlalchemy.engine import Inspector
from sqlalchemy.exc import CompileError, NoSuchTableError, SAWarning

from db_dedup.config import WatchedTable
from db_dedup.dialects import dialect_for
from db_dedup.dialects.base import Dialect
from db_dedup.dialects.stored_names import stored_as
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.records import Family, SourceColumn, SourceTable
from db_dedup.records.names import Namespace
from db_dedup.schema.own_names import own_name_test
from db_dedup.translation import Phrase

_FAMILIES: Final[tuple[tuple[type[Any], Family], ...]] = (
    (types.Boolean, Family.BOOLEAN),
    (types.Uuid, Family.UUID),
    (types.Integer, Family.NUMBER),
    (types.Numeric, Family.NUMBER),
    (types.Float, Family.NUMBER),
    (types.DateTime, Family.DATE),
    (types.Date, Family.DATE),
    (types.Time, Family.TIME),
    (types.LargeBinary, Family.BINARY),
    (types.BINARY, Family.BINARY),
    (types.VARBINARY, Family.BINARY),
    (types.String, Family.TEXT),
)


def inspect_table(connection: Connection, name: str, schema: str | None = None) -> SourceTable:
    """Describe a table or view.

    Without a primary key, a unique index over NOT NULL columns is taken as the key if there is only one.

    Raises:
        UnknownNameError: there is none of that name.
    """
    inspector = _inspector(connection)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # a type of an extension is no fault of the user's
        try:
            found = inspector.get_columns(name, schema)
            primary_key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
        except NoSuchTableError:
            known = [*inspector.get_table_names(schema), *_view_names(inspector, schema)]
            raise UnknownNameError(Phrase("table"), name, known, lists_others=False) from None
        dialect = dialect_for(connection)
        names = [str(column["name"]) for column in found]
        true_name = dict(zip(names, dialect.column_names(connection, name, schema, names), strict=True))
        is_view = stored_as(connection)(name) in _view_names(inspector, schema)
        nullable = {column["name"] for column in found if column["nullable"]}

        def whole(index: str | None, columns: Sequence[str | None]) -> tuple[str, ...]:
            """Return all columns of a unique index."""
            return tuple(dialect.unique_columns(connection, name, schema, index, list(map(str, columns))))

        key = whole(None, primary_key) if primary_key else ()
        if not key and not is_view:
            key = _only_unique_key(inspector, name, schema, nullable, whole)
    collations = dialect.column_collations(connection, name, schema)
    columns = tuple(
        _source_column(
            {**column, "name": true_name[column["name"]]}, connection.dialect, dialect.families, collations
        )
        for column in found
    )
    if not all(column.type_name for column in columns):
        names_of_types = dialect.type_names(connection, name, schema)
        columns = tuple(replace(c, type_name=c.type_name or names_of_types.get(c.name, "")) for c in columns)
    return SourceTable(name, schema, columns, tuple(true_name[column] for column in key), is_view)


def resolve_key(table: SourceTable, configured: tuple[str, ...] | None) -> tuple[SourceColumn, ...]:
    """Return the columns that identify a row.

    Raises:
        ConfigError: none are configured and the table has no key of its own.
        UnknownNameError: a configured one is not there.
    """
    names = configured or table.primary_key
    if not names and table.is_view:
        raise ConfigError(
            "{table!r} is a view, which has no primary key: name the columns that identify a row, "
            'e.g. key = ["{column}"] under [tables.{table}], and its columns below',
            table=table.name,
            column=table.columns[0].name,
        )
    if not names:
        raise ConfigError(
            "table {table!r} has no primary key, and no single unique index over columns that are "
            'never NULL: name the columns that identify a row, e.g. key = ["{column}"]',
            table=table.name,
            column=table.columns[0].name,
        )
    check_names(names, table)
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                "the key of table {table!r} names the column {column!r} more than once: name it once",
                table=table.name,
                column=name,
            )
    return tuple(table.column(name) for name in names)


def check_columns(watched: WatchedTable, table: SourceTable) -> None:
    """Raise UnknownNameError for the first column of the settings that the table does not have."""
    order = (watched.order,) if watched.order else ()
    within = (part.column for part in watched.within)
    check_names((*watched.columns, *(watched.key or ()), *order, *within), table)


@dataclass(frozen=True)
class Relations:
    """The names of the user's tables and views, sorted."""

    tables: list[str]
    views: list[str]


def list_relations(connection: Connection, dialect: Dialect, namespace: Namespace) -> Relations:
    """List the user's tables and views; ours, and the partitions of a partitioned table, are left out."""
    inspector = _inspector(connection)
    left_out = dialect.partition_names(connection) | _our_names(connection, dialect, namespace)
    prefix = stored_as(connection)(namespace.prefix)

    def is_theirs(name: str) -> bool:
        return name not in left_out and not (prefix and name.startswith(prefix))

    return Relations(
        sorted(filter(is_theirs, inspector.get_table_names())),
        sorted(filter(is_theirs, _view_names(inspector, None))),
    )


def refuse_our_names(
    connection: Connection, dialect: Dialect, namespace: Namespace, name: str, schema: str | None
) -> None:
    """Raise ConfigError if a name without a schema is found in our schema, and is that of a table of ours.

    The table that the user means is then in another schema: an account that has the name of our schema has
    it first on its search path.
    """
    may_be_ours = schema is None and own_name_test(namespace)(name)  # of all others the database is not asked
    if may_be_ours and name in _our_names(connection, dialect, namespace):
        raise ConfigError(
            "{table!r} is a table or view of db_dedup, which the search path finds in the schema {schema!r}: "
            'for a table of yours of that name give its schema in its settings, e.g. schema = "public"',
            table=name,
            schema=namespace.schema,
        )


def _our_names(connection: Connection, dialect: Dialect, namespace: Namespace) -> set[str]:
    """Return the names of our tables and views that are found without our schema."""
    if namespace.schema is None:
        return set()
    return set(filter(own_name_test(namespace), dialect.names_found_in(connection, namespace.schema)))


def _inspector(connection: Connection) -> Inspector:
    return inspect(connection)


def _view_names(inspector: Inspector, schema: str | None) -> list[str]:
    names = list(inspector.get_view_names(schema))
    try:
        return names + inspector.get_materialized_view_names(schema)
    except NotImplementedError:
        return names


def _only_unique_key(
    inspector: Inspector,
    name: str,
    schema: str | None,
    nullable: set[str],
    whole: Callable[[str | None, Sequence[str | None]], tuple[str, ...]],
) -> tuple[str, ...]:
    candidates = {
        whole(constraint["name"], constraint["column_names"])
        for constraint in inspector.get_unique_constraints(name, schema)
    } | {
        whole(index["name"], index["column_names"])
        for index in inspector.get_indexes(name, schema)
        if index["unique"] and None not in index["column_names"] and not _is_partial(index)
    }
    usable = [columns for columns in candidates if columns and not nullable.intersection(columns)]
    return usable[0] if len(usable) == 1 else ()


def _is_partial(index: Any) -> bool:
    options = index.get("dialect_options", {})
    return any(name.endswith("_where") and value is not None for name, value in options.items())


def _source_column(
    column: Any, dialect: SQLDialect, families: Mapping[str, Family], collations: Mapping[str, str]
) -> SourceColumn:
    kind = getattr(column["type"], "data_type", column["type"])  # a domain is what it is made of
    return SourceColumn(
        name=column["name"],
        family=_family(kind, families),
        type_name=_type_name(kind, dialect),
        max_length=getattr(kind, "length", None),
        is_nullable=bool(column["nullable"]),
        collation=getattr(kind, "collation", None) or collations.get(column["name"]),
    )


def _family(kind: Any, by_name: Mapping[str, Family]) -> Family:
    name = type(kind).__name__.upper()
    if name in by_name:
        return by_name[name]
    return next((family for base, family in _FAMILIES if isinstance(kind, base)), Family.OTHER)


def _type_name(kind: Any, dialect: SQLDialect) -> str:
    """As the database writes it, without its collation; "" where it has no name that we know."""
    try:
        return str(kind.compile(dialect=dialect)).partition(" COLLATE ")[0]
    except CompileError:
        return ""


def check_names(names: Iterable[str], table: SourceTable) -> None:
    """Raise UnknownNameError for the first name that is no column of the table."""
    known = [column.name for column in table.columns]
    for name in names:
        if name not in known:
            kind = Phrase("column of table {table!r}:", table=table.name)
            raise UnknownNameError(kind, name, known)
