"""Many rows of our tables read at once in MySQL and MariaDB: as JSON, many in one text."""

from itertools import chain
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, String, func, type_coerce

_ID_BITS: Final = 10
"""A text has the rows of 1,024 consecutive ids: their ids and fingerprints take some 30 KB."""


def rows_as_json(query: Select[Any], row_id: ColumnElement[int]) -> Select[Any]:
    """Return a query that joins the rows with GROUP_CONCAT: the driver decodes each value in Python."""
    values = [func.coalesce(type_coerce(column, String), "null") for column in query.selected_columns]
    after_commas = chain.from_iterable((",", value) for value in values)
    row = func.concat("[", *list(after_commas)[1:], "]")
    wanted = func.min(row_id), func.max(row_id), func.count(), func.group_concat(row)
    return query.with_only_columns(*wanted).group_by(row_id.op(">>")(_ID_BITS))
