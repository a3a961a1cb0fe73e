"""A sheet: rows of cells under named columns, read from a file or a data frame."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.plurals import counted
from db_dedup.translation import Phrase

_MOST_COLUMNS: Final = 1_998
"""A table of SQLite has no more than 2,000, and two are for the numbers and the ranks of the rows."""


@dataclass(frozen=True)
class Sheet:
    """A table outside any database.

    Attributes:
        names: of the columns, unique whatever their case.
        rows: n rows of one value for each column; None for an empty cell.
        first_row: the number by which people know the first of these rows: 2 below a header line.
        description: what was read and how, for messages.
        notes: what the user should know before trusting the result, a sentence each.
        table: the PyArrow table of a Parquet file, whose columns keep their types when they are written; None
            for other sources.
    """

    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    first_row: int
    description: str
    notes: tuple[str, ...] = ()
    table: Any = None

    def __post_init__(self) -> None:
        """Refuse more columns than a table of SQLite can have.

        Raises:
            ConfigError: There are too many.
        """
        if len(self.names) > _MOST_COLUMNS:
            raise ConfigError(
                "{description} has {columns:,} columns, and no more than {most:,} can be read: delete those "
                "that are not needed, in a copy",
                description=self.description,
                columns=len(self.names),
                most=_MOST_COLUMNS,
            )

    def place(self, name: str) -> int:
        """Return the place of a column.

        Raises:
            UnknownNameError: There is none of that name.
        """
        if name not in self.names:
            raise UnknownNameError(Phrase("column"), name, self.names)
        return self.names.index(name)


def sheet_of(records: Iterable[Sequence[Any]], first_row: int, description: str) -> Sheet:
    """Make a sheet of records, of which the first holds the names of the columns.

    Cells that are missing at the end of a record are empty. A record without any value is a row, too, so that
    rows have the numbers that a spreadsheet shows.

    Args:
        records: the header, which must be there, then the rows.
        first_row: the number of the first record after the header.
        description: what was read and how.

    Raises:
        ConfigError: A record has values beyond the last column.
    """
    lines = iter(records)
    given = [_stripped(cell) for cell in next(lines)]
    rows = [_filled(record, len(given), number) for number, record in enumerate(lines, first_row)]
    return Sheet(unique_names(given), rows, first_row, description, tuple(_doubts(given, rows)))


def _doubts(given: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """Yield a sentence if the first row is probably a title above the header: few columns have a name.

    Few are fewer than half, or half of them if the first column has a name. If it has none, it may be a
    column of row numbers, and the others are named. Columns without any value do not count, because workbooks
    have them beside the table.
    """
    named = sum(map(bool, given))
    unnamed = [place for place, name in enumerate(given) if not name]
    filled = sum(any(row[place] is not None for row in rows) for place in unnamed)
    if filled > named or (filled == named and given[0]):
        yield Phrase(
            "warning: the first row names only {named:,} of the {columns:,} columns that have values; if the "
            "names are in a later row, delete the rows above it",
            named=named,
            columns=named + filled,
        )


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Number the names that occur before, whatever their case, and name the columns that have none."""
    taken: set[str] = set()
    unique = []
    for place, given in enumerate(names, 1):
        name = base = given or f"column_{place}"
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name.casefold())
        unique.append(name)
    return tuple(unique)


def _stripped(cell: Any) -> str:
    return "" if cell is None else str(cell).strip().lstrip("\ufeff")


def _filled(record: Sequence[Any], width: int, number: int) -> tuple[Any, ...]:
    if any(cell not in (None, "") for cell in record[width:]):
        raise ConfigError(
            "row {row} has {values}, but the header names {columns}: put quotation marks around a text that "
            "contains the separator, and delete rows above the header",
            row=number,
            values=counted(len(record), "value"),
            columns=counted(width, "column"),
        )
    cells = [None if cell == "" else cell for cell in record[:width]]
    return (*cells, *[None] * (width - len(cells)))
