"""The four fixed views, as selects over our tables, and the DDL that makes and drops a view.

Only one of the two fingerprints is joined to the watched table. If both were, a planner without statistics
might join all rows with all rows. Ids and sizes are positive, so `> 0` says "not NULL" as a range, for which
any planner uses an index. Only a representative has a `group_size`.
"""

from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Dialect,
    FromClause,
    ScalarSelect,
    Select,
    TableClause,
    and_,
    case,
    column,
    false,
    func,
    literal_column,
    null,
    or_,
    select,
    table,
    union_all,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from db_dedup.records.forms import FORMS
from db_dedup.records.kinds import KINDS
from db_dedup.records.names import Namespace
from db_dedup.schema.tables import Tables, our_tables

AnySelect = Select[Any] | CompoundSelect[Any]


def duplicate_pairs(tables: Tables) -> AnySelect:
    """Select each confirmed pair once, the earlier-received row first, and each link of an exact
    duplicate."""
    return union_all(confirmed_pairs(tables).query, exact_links(tables).query)


class PartOfPairs(NamedTuple):
    """A part of `duplicate_pairs`.

    Attributes:
        query: what is selected.
        ids: two columns of ids that together tell its pairs apart, to order them by.
    """

    query: Select[Any]
    ids: tuple[ColumnElement[int], ColumnElement[int]]


def confirmed_pairs(tables: Tables) -> PartOfPairs:
    """Return the first part of `duplicate_pairs`."""
    watched, pair = tables.watched_table.alias("watched"), tables.pair.alias("pair")
    a, b = tables.fingerprint.alias("a"), tables.fingerprint.alias("b")
    query = (
        select(
            watched.c.name.label("table_name"),
            a.c.row_key.label("key_a"),
            b.c.row_key.label("key_b"),
            pair.c.distance.label("distance"),
            pair.c.similarity.label("similarity"),
            pair.c.found_at.label("found_at"),
            case(*((pair.c.kind == number, name) for number, name in enumerate(KINDS))).label("kind"),
            case(
                (pair.c.contained_id == a.c.id, a.c.row_key), (pair.c.contained_id == b.c.id, b.c.row_key)
            ).label("contained_key"),
            pair.c.other_place.label("other_place"),
            _form(a, b).label("form"),
        )
        .select_from(pair)
        .join(a, a.c.id == pair.c.id_a)
        .join(b, b.c.id == pair.c.id_b)
        .join(watched, _serves(a, watched))
    )
    return PartOfPairs(query, (pair.c.id_a, pair.c.id_b))


def exact_links(tables: Tables) -> PartOfPairs:
    """Return the second part of `duplicate_pairs`: the same columns in the same order."""
    watched = tables.watched_table.alias("watched")
    original, copy = tables.fingerprint.alias("original"), tables.fingerprint.alias("copy")
    query = (
        select(
            watched.c.name,
            original.c.row_key,
            copy.c.row_key,
            literal_column("0"),
            literal_column("1.0"),
            copy.c.found_at,
            literal_column("'copy'"),
            null(),
            false(),
            _form(original, copy),
        )
        .select_from(copy)
        .join(original, original.c.id == copy.c.copy_of)
        .join(watched, _serves(original, watched))
        .where(copy.c.copy_of > 0)
    )
    return PartOfPairs(query, (copy.c.copy_of, copy.c.id))


def duplicate_groups(tables: Tables) -> AnySelect:
    """Select each group once, with its size (exact duplicates included) and its flags."""
    watched, first = tables.watched_table.alias("watched"), tables.fingerprint.alias("first")
    return (
        select(
            watched.c.name.label("table_name"),
            first.c.row_key.label("group_id"),
            first.c.group_size.label("size"),
            first.c.row_key.label("representative_key"),
            func.coalesce(first.c.is_loose, false()).label("is_loose"),
            func.coalesce(first.c.is_abridged, false()).label("is_abridged"),
        )
        .select_from(first)
        .join(watched, _serves(first, watched))
        .where(first.c.group_size > 0)
    )


def duplicate_members(tables: Tables) -> AnySelect:
    """Select each row that is in a group, with its group."""
    watched = tables.watched_table.alias("watched")
    first, member = tables.fingerprint.alias("first"), tables.fingerprint.alias("member")
    return (
        select(
            watched.c.name.label("table_name"),
            first.c.row_key.label("group_id"),
            member.c.row_key.label("row_key"),
            (member.c.id == member.c.group_id).label("is_representative"),
        )
        .select_from(member)
        .join(first, first.c.id == member.c.group_id)
        .join(watched, _serves(first, watched))
        .where(first.c.group_size > 0, member.c.group_id > 0)
    )


def queue_lag(tables: Tables) -> AnySelect:
    """Select each watched table once, with its number of waiting changes and other figures of its lag."""
    watched = tables.watched_table.alias("watched")
    change, dead, scan = tables.change, tables.dead_change, tables.scan

    def of_table(query: Select[Any], of: FromClause) -> ScalarSelect[Any]:
        return query.select_from(of).where(of.c.table_id == watched.c.id).scalar_subquery()

    finished = select(func.max(scan.c.finished_at)).where(scan.c.state == "finished")
    return select(
        watched.c.name.label("table_name"),
        of_table(select(func.count()), change).label("waiting"),
        of_table(select(func.min(change.c.queued_at)), change).label("oldest_at"),
        of_table(select(func.count()), dead).label("dead"),
        watched.c.attached_at.label("attached_at"),
        of_table(finished, scan).label("last_scan_at"),
    )


FIXED_VIEWS: Final = {
    "duplicate_pairs": duplicate_pairs,
    "duplicate_groups": duplicate_groups,
    "duplicate_members": duplicate_members,
    "queue_lag": queue_lag,
}
"""What each fixed view selects, by its name before the prefix."""


def fixed_view(namespace: Namespace, base: str) -> TableClause:
    """Return a fixed view to select from, with typed columns (flags are bool in all databases)."""
    query = FIXED_VIEWS[base](our_tables(namespace))
    columns = [column(c.name, c.type) for c in query.selected_columns]
    return table(namespace.name(base), *columns, schema=namespace.schema)


def _serves(row: FromClause, watched: FromClause) -> ColumnElement[bool]:
    """Return the condition that a fingerprint is of the recipe that serves now."""
    return and_(row.c.table_id == watched.c.id, row.c.recipe == watched.c.recipe)


def _form(one: FromClause, other: FromClause) -> ColumnElement[str]:
    """Return the form of a pair: the stronger form of its two rows; NULL where one has none."""
    pairs = and_(one.c.form.is_not(None), other.c.form.is_not(None))
    stronger = reversed(list(enumerate(FORMS)))
    return case(*((and_(pairs, or_(one.c.form == n, other.c.form == n)), name) for n, name in stronger))


class CreateView(ExecutableDDLElement):
    """CREATE VIEW; values in the select are written out, since DDL takes no parameters."""

    inherit_cache = False

    def __init__(self, name: str, schema: str | None, query: AnySelect) -> None:
        """Name the view, its schema (None for the default one) and what it selects."""
        self.view, self.query = table(name, schema=schema), query


class ReplaceView(CreateView):
    """CREATE OR REPLACE VIEW, which not every database has."""

    inherit_cache = False


class DropView(ExecutableDDLElement):
    """DROP VIEW IF EXISTS."""

    inherit_cache = False

    def __init__(self, name: str, schema: str | None) -> None:
        """Name the view and its schema (None for the default one)."""
        self.view = table(name, schema=schema)


@compiles(CreateView)
def _create_view(element: CreateView, compiler: DDLCompiler, **_: Any) -> str:
    query = compiler.sql_compiler.process(element.query, literal_binds=True)
    return f"CREATE VIEW {_view_name(element.view, compiler)} AS {query}"


@compiles(ReplaceView)
def _replace_view(element: ReplaceView, compiler: DDLCompiler, **_: Any) -> str:
    query = compiler.sql_compiler.process(element.query, literal_binds=True)
    return f"CREATE OR REPLACE VIEW {_view_name(element.view, compiler)} AS {query}"


@compiles(DropView)
def _drop_view(element: DropView, compiler: DDLCompiler, **_: Any) -> str:
    return f"DROP VIEW IF EXISTS {_view_name(element.view, compiler)}"


def printable(statement: CreateView | DropView, dialect: Dialect) -> str:
    """Return a statement as the driver sends it: for some drivers percent signs are compiled doubled."""
    compiled = str(statement.compile(dialect=dialect)).strip()
    return compiled % () if dialect.paramstyle in ("format", "pyformat") else compiled


def _view_name(view: TableClause, compiler: DDLCompiler) -> str:
    return compiler.preparer.format_table(view)
