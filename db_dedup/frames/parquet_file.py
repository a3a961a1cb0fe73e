"""Parquet files, through PyArrow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from db_dedup.errors import ConfigError
from db_dedup.extras import load
from db_dedup.frames.sheet import Sheet, unique_names

_EXTRA: Final = "parquet"


def read_parquet(path: Path) -> Sheet:
    """Read a Parquet file.

    Raises:
        ConfigError: It is none.
    """
    table = _read(path)
    columns = [column.to_pylist() for column in table.columns]
    rows = list(zip(*columns, strict=True))
    return Sheet(unique_names(table.column_names), rows, 1, f"{path.name}: Parquet")


def write_parquet(
    path: Path, names: Sequence[str], rows: Sequence[Sequence[Any]], source: Path | None = None
) -> None:
    """Write a Parquet file.

    Args:
        path: the file.
        names: of the columns.
        rows: n rows of one value for each column.
        source: a Parquet file from which the first columns were read: they are taken from there, so that they
            keep their types.
    """
    arrow, parquet = load("pyarrow", _EXTRA), load("pyarrow.parquet", _EXTRA)
    kept = [] if source is None else _read(source).columns
    added = [_array(arrow, [row[place] for row in rows]) for place in range(len(kept), len(names))]
    parquet.write_table(arrow.table([*kept, *added], names=list(names)), path)


def _array(arrow: Any, values: Sequence[Any]) -> Any:
    """Of the one type that all values have, else of texts."""
    try:
        return arrow.array(values)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        return arrow.array([None if value is None else str(value) for value in values])


def _read(path: Path) -> Any:
    arrow, parquet = load("pyarrow", _EXTRA), load("pyarrow.parquet", _EXTRA)
    try:
        return parquet.read_table(path)
    except arrow.ArrowInvalid as error:
        raise ConfigError(
            "{path} cannot be read as Parquet: {error}", path=path, error=str(error).splitlines()[0]
        ) from None
