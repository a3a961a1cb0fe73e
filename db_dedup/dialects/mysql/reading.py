"""Many rows of our tables read at once in MySQL and MariaDB: by one parameter, or many in one text."""

from itertools import chain
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    String,
    bindparam,
    func,
    text,
    type_coerce,
)

from db_dedup.dialects.keys import JsonList

_ID_BITS: Final = 10
"""A text has the rows of 1,024 consecutive ids: their ids and fingerprints take some 30 KB."""


def rows_as_json(query: Select[Any], row_id: ColumnElement[int]) -> Select[Any]:
    """Return a query that joins the rows with GROUP_CONCAT: the driver decodes each value in Python."""
    values = [func.coalesce(type_coerce(column, String), "null") for column in query.selected_columns]
    after_commas = chain.from_iterable((",", value) for value in values)
    row = func.concat("[", *list(after_commas)[1:], "]")
    wanted = func.min(row_id), func.max(row_id), func.count(), func.group_concat(row)
    ids = row_id.op(">>")(_ID_BITS)
    return query.with_only_columns(*wanted).group_by(ids).order_by(ids)


def each_of(query: Select[Any], column: ColumnElement[Any], parameter: str) -> Select[Any]:
    """Pass the values as one JSON array: each parameter is written and escaped in Python.

    STRAIGHT_JOIN, since the optimizer does not know how many values there are. The character sets are named,
    since a session of the caller may have one that JSON cannot be in.
    """
    items = text(
        "SELECT value FROM JSON_TABLE("  # noqa: S608 - a name of ours
        f"CONVERT(:{parameter} USING utf8mb4), _utf8mb4'$[*]' COLUMNS (value BIGINT PATH _utf8mb4'$')"
        ") AS dedup_item"
    ).bindparams(bindparam(parameter, type_=JsonList()))
    values = items.columns(value=BigInteger).subquery("dedup_value")
    (table,) = query.get_final_froms()
    joined = values.join(table, column == values.c.value)
    return query.select_from(joined).prefix_with("STRAIGHT_JOIN")
