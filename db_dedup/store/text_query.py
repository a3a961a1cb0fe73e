"""The rows of a user's table as one query of texts, for machines that read it with another driver.

Drivers turn a value of the same column into different objects: a number into one of Python's or of Java's, a
date into one with or without a zone. So every value is turned into text by the database, by the expressions
that write row keys. Read as texts, the values have the canonical texts that they have read by our own driver.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import ColumnElement, Engine, Select, and_, column, literal, literal_column, or_, select
from sqlalchemy.engine import Dialect as SQLDialect
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.keys import sql_text
from db_dedup.errors import ConfigError
from db_dedup.flow.rows.source_rows import RowTexts
from db_dedup.flow.rows.values import parse_number
from db_dedup.records import Family, SourceColumn
from db_dedup.store.source import Source

_SPLIT: Final = "dedup_split"
_QUOTED_LITERALS: Final = (Family.TEXT, Family.UUID)
"""Families of key columns whose values a database compares with a quoted literal; numbers need no quotes."""
_KEYS_SAMPLED: Final = 20_000
_QUOTED: Final = tuple(
    re.compile(rf"{text}|\"[^\"]*\"|`[^`]*`", re.DOTALL)
    for text in (r"'(?:[^']|'')*'", r"'(?:[^'\\]|''|\\.)*'")
)
"""Quoted texts and names: of the databases in which a backslash escapes nothing, and of the others."""


@dataclass(frozen=True)
class TextQuery:
    """A query, and how its rows become rows of the flow.

    Attributes:
        sql: the query; its columns are `names`, all texts, and one more, by which it can be split.
        names: row key, order value (if there is an order column), watched columns, `within` columns.
        has_order: there is an order column.
        texts: turns the texts of a row into those of the flow.
        parts: conditions that each row of the query meets exactly one of; none for a query in one part.
    """

    sql: str
    names: tuple[str, ...]
    has_order: bool
    texts: RowTexts
    parts: tuple[str, ...]


def text_query(source: Source, engine: Engine, part_count: int) -> TextQuery:
    """Return the query of a table.

    Args:
        source: the table.
        engine: connects to it; its row keys are read, to find parts of equal size.
        part_count: into how many parts the query should be split.

    Raises:
        ConfigError: the key must be checked row by row, which other machines do not do, or the database
            does not write a column as text.
    """
    dialect, table = source.dialect, source.from_clause
    if source.doubtful:
        raise ConfigError(
            "only the embedded engine checks that the database finds a row by a key of the type {type_name}: "
            "scan with it, or name another key",
            type_name=source.doubtful[0][0].type_name or "unknown",
        )
    order = source.order_column
    columns = [*([order] if order else []), *source.value_columns, *(c for _, c in source.within)]
    _require_texts(columns, source, engine)
    chosen = [dialect.row_key(source.key_columns, table)]
    chosen += [dialect.key_text(c, table.c[c.name]) for c in columns]
    names = tuple(f"dedup_{i}" for i in range(len(chosen)))
    labelled: list[Any] = [c.label(name) for c, name in zip(chosen, names, strict=True)]
    query: Select[Any] = select(*labelled).select_from(table)
    compiling = _without_parameters(engine)
    parts: tuple[str, ...] = ()
    split = _split_column(source, engine) if part_count > 1 else None
    if split is not None:
        query = query.add_columns(table.c[split.column.name].label(_SPLIT))
        parts = _parts(split, part_count, compiling)
    sql = _written(query.where(source.condition), compiling)
    if all("?" in quoted.sub("", sql) for quoted in _QUOTED):
        raise ConfigError(
            "the condition where has an operator with a question mark, which the Spark engine takes for a "
            "parameter: write its function, such as jsonb_exists(tags, 'urgent')"
        )
    return TextQuery(sql, names, order is not None, source.texts, parts)


def _require_texts(columns: Iterable[SourceColumn], source: Source, engine: Engine) -> None:
    """Check that the database writes the values of types that we do not know as text.

    A database refuses to write some, such as points, or returns NULL in place of their text.

    Raises:
        ConfigError: it does not.
    """
    for each in columns:
        if each.family is not Family.OTHER or each.type_name:
            continue
        value = source.from_clause.c[each.name]
        is_lost = and_(value.is_not(None), source.dialect.key_text(each, value).is_(None))
        query = select(literal(1)).select_from(source.from_clause).where(source.condition, is_lost).limit(1)
        try:
            with engine.connect() as connection:
                is_text = connection.execute(query).first() is None
        except SQLAlchemyError as error:
            fault = source.dialect.translate_error(error)
            if fault.is_transient:
                raise fault from error
            is_text = False
        if not is_text:
            raise ConfigError(
                "the database does not write the values of column {column!r} as text, so that only the "
                "embedded engine reads them: scan with it, or leave the column out",
                column=each.name,
            )


@dataclass(frozen=True)
class _Split:
    """A key column, and some of its values as texts, ascending as far as Python can tell."""

    column: SourceColumn
    values: list[str]


def _split_column(source: Source, engine: Engine) -> _Split | None:
    """Return the key column with the most values among some rows that can be compared with a literal."""
    usable = [c for c in source.key_columns if c.family is Family.NUMBER or c.family in _QUOTED_LITERALS]
    if not usable:
        return None
    every, seen, sample = 1, 0, list[str]()
    for page in source.row_keys(engine):
        sample += page[-seen % every :: every]
        seen += len(page)
        while len(sample) > _KEYS_SAMPLED:
            sample, every = sample[::2], every * 2
    found, keys = [], list(source.key_columns)
    for c in usable:
        values = {_part_of(key, keys.index(c), len(keys)) for key in sample}
        values = {value for value in values if "\\" not in value}  # in some databases it begins an escape
        ordered = sorted(values, key=_number) if c.family is Family.NUMBER else sorted(values)
        found.append(_Split(c, ordered))
    best = max(found, key=lambda split: len(split.values))
    return best if len(best.values) > 1 else None


def _number(text: str) -> Decimal:
    return parse_number(text) or Decimal(0)


def _parts(split: _Split, count: int, compiling: SQLDialect) -> tuple[str, ...]:
    """Return conditions on the split column.

    Each value meets exactly one of them, in whatever order the database sorts the values: a value is in the
    first part if it is below the first limit, else in the second if it is below the second limit, and so on.
    """
    values = split.values
    limits = list(dict.fromkeys(values[i * len(values) // count] for i in range(1, count)))
    name: ColumnElement[Any] = column(_SPLIT)
    below = [name < _literal(limit, split.column) for limit in limits]
    if not below:
        return ()
    first: ColumnElement[bool] = or_(below[0], name.is_(None))
    # Ascending for the database, too, where the limits are numbers: then two limits describe a part.
    between = [and_(~lower, upper) for lower, upper in pairwise(below)]
    if split.column.family is not Family.NUMBER:
        between = [and_(*(~lower for lower in below[: i + 1]), upper) for i, upper in enumerate(below[1:])]
    last = and_(*(~each for each in (below[-1:] if split.column.family is Family.NUMBER else below)))
    return tuple(_written(condition, compiling) for condition in [first, *between, last])


def _literal(value: str, of: SourceColumn) -> ColumnElement[Any]:
    return literal_column(str(_number(value))) if of.family is Family.NUMBER else sql_text(value)


def _part_of(row_key: str, place: int, count: int) -> str:
    """Return one column of a row key."""
    return row_key if count == 1 else str(json.loads(row_key)[place])


def _without_parameters(engine: Engine) -> SQLDialect:
    """Return the dialect with a parameter style that does not double percent signs."""
    kind: Callable[..., SQLDialect] = type(engine.dialect)
    return kind(paramstyle="named")


def _written(statement: Select[Any] | ColumnElement[Any], compiling: SQLDialect) -> str:
    return str(statement.compile(dialect=compiling, compile_kwargs={"literal_binds": True}))
