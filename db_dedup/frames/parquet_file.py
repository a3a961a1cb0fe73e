"""Parquet files, through PyArrow."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any, Final

from db_dedup.errors import ConfigError
from db_dedup.extras import load
from db_dedup.frames.sheet import Sheet, unique_names
from db_dedup.records import Family
from db_dedup.translation import Phrase

_EXTRA: Final = "parquet"
_ROWS_A_PART: Final = 10_000


def read_parquet(path: Path) -> Sheet:
    """Read a Parquet file.

    Raises:
        ConfigError: The file is no Parquet file.
    """
    table = _read(path)
    columns = [_values(column) for column in table.columns]
    rows = list(zip(*columns, strict=True))
    description = Phrase("{name}: Parquet", name=path.name)
    return Sheet(unique_names(table.column_names), rows, 1, description, table=table)


def write_parquet(path: Path, names: Sequence[str], rows: Sequence[Sequence[Any]], table: Any = None) -> None:
    """Write a Parquet file.

    Args:
        path: the file.
        names: of the columns.
        rows: n rows of one value for each column.
        table: the PyArrow table from which the first columns were read: they are taken from it, so that they
            keep their types.
    """
    arrow, parquet = load("pyarrow", _EXTRA), load("pyarrow.parquet", _EXTRA)
    kept = [] if table is None else table.columns
    added = [_array(arrow, [row[place] for row in rows]) for place in range(len(kept), len(names))]
    parquet.write_table(arrow.table([*kept, *added], names=list(names)), path)


def write_parquet_parts(
    path: Path, columns: Sequence[tuple[str, Family, str]], rows: Iterable[Sequence[Any]]
) -> None:
    """Write a Parquet file some thousand rows at a time, with columns of fixed types.

    Args:
        path: the file.
        columns: name, family and type in the database of each column.
        rows: rows of one value for each column.

    Raises:
        ConfigError: A value is not of the type of its column.
    """
    arrow, parquet = load("pyarrow", _EXTRA), load("pyarrow.parquet", _EXTRA)
    types = [(name, _type_of(arrow, family, type_name)) for name, family, type_name in columns]
    schema = arrow.schema(types)
    with parquet.ParquetWriter(path, schema) as writer:
        taken = iter(rows)
        while part := list(islice(taken, _ROWS_A_PART)):
            arrays = [
                _typed_array(arrow, [row[place] for row in part], schema.field(place))
                for place in range(len(columns))
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _values(column: Any) -> list[Any]:
    """Return the values of a column; as texts if Python has none for some, such as a date after 9999."""
    arrow = load("pyarrow", _EXTRA)
    try:
        return list(column.to_pylist())
    except (arrow.ArrowException, AttributeError, OverflowError, ValueError):
        if arrow.types.is_duration(column.type):  # PyArrow has no texts for durations
            column = column.cast(arrow.int64())
        return list(column.cast(arrow.string()).to_pylist())


def _type_of(arrow: Any, family: Family, type_name: str) -> Any:
    if family is Family.BOOLEAN:
        return arrow.bool_()
    if family is Family.NUMBER and "INT" in type_name.upper():
        return arrow.uint64() if "UNSIGNED" in type_name.upper() else arrow.int64()
    if family is Family.NUMBER:
        return arrow.float64()
    if family is Family.DATE:
        return arrow.date32() if type_name.upper() == "DATE" else arrow.timestamp("us")
    return arrow.string()


def _typed_array(arrow: Any, values: Sequence[Any], field: Any) -> Any:
    try:
        if arrow.types.is_floating(field.type):
            return arrow.array([None if v is None else float(v) for v in values], field.type)
        if arrow.types.is_timestamp(field.type):
            return arrow.array(list(map(_at_midnight, values)), field.type)
        if arrow.types.is_date(field.type):
            return arrow.array(list(map(_day, values)), field.type)
        return arrow.array(values, field.type)
    except (arrow.ArrowException, ValueError, TypeError, OverflowError):
        raise ConfigError(
            "column {column!r} has a value that is not of the type {type}: leave it out by --columns, or "
            "write .csv",
            column=field.name,
            type=str(field.type),
        ) from None


def _at_midnight(value: Any) -> Any:
    """Return the moment of a date: columns of SQLite and of workbooks hold dates among moments."""
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return datetime.combine(value, time.min) if is_day else value


def _day(value: Any) -> Any:
    """Return the value, which is a date.

    Raises:
        ValueError: it is a moment, of which a column of dates would lose the time.
    """
    if not isinstance(value, datetime):
        return value
    if value.time() != time.min:
        raise ValueError
    return value.date()


def _array(arrow: Any, values: Sequence[Any]) -> Any:
    """Return an array of the type that all values have, or of texts if they have several types."""
    has_moments = any(isinstance(value, datetime) for value in values)
    try:
        # Of dates and moments PyArrow would make dates.
        return arrow.array(list(map(_at_midnight, values)) if has_moments else values)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        return arrow.array([None if value is None else str(value) for value in values])


def _read(path: Path) -> Any:
    arrow, parquet = load("pyarrow", _EXTRA), load("pyarrow.parquet", _EXTRA)
    try:
        return parquet.read_table(path)
    except MemoryError:  # PyArrow's is an ArrowException, too
        raise
    except (arrow.ArrowException, OSError) as error:  # a damaged page is an OSError
        raise ConfigError(
            "{path} cannot be read as Parquet: {error}; write the file again, or save its rows as CSV",
            path=path,
            error=str(error).splitlines()[0],
        ) from None
