"""Find the duplicates among the rows of a sheet, in a SQLite database made for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice, repeat
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, make_url

from db_dedup.app import Database, Deduplicator
from db_dedup.config import WatchedTable, watched_table
from db_dedup.dialects.batches import batches
from db_dedup.errors import ConfigError
from db_dedup.flow.rows.values import canonical_text
from db_dedup.frames.groups import RowGroups
from db_dedup.frames.sheet import Sheet
from db_dedup.progress import Progress
from db_dedup.proposal import SAMPLE_CHARACTERS, ColumnChoice, choose_columns, profile_column, risks_of_texts
from db_dedup.records import Family, ScanReport
from db_dedup.records.names import view_name
from db_dedup.temporary_files import temporary_folder

TABLE_NAME: Final = "rows"
_SAMPLE_ROWS: Final = 1_000
_ROWS_A_STATEMENT: Final = 1_000


@dataclass(frozen=True)
class SheetDuplicates:
    """The duplicates among the rows of a sheet.

    Attributes:
        dedup: the watched table of these rows; a row's key is its number.
        report: the report of the scan.
        groups: the groups of the rows, by position.
        texts: the names of the columns of texts that were compared.
    """

    dedup: Deduplicator
    report: ScanReport
    groups: RowGroups
    texts: tuple[str, ...]

    @property
    def view(self) -> str:
        """Return the name of the view of these rows with their groups."""
        return view_name(self.dedup.database.namespace, self.dedup.name, None, limit_counts_bytes=False)


def propose_columns(sheet: Sheet) -> tuple[ColumnChoice, ...]:
    """Return for each column of a sheet whether it should be compared, and why, by its first rows."""
    texts = _first_texts(sheet, sheet.names)
    return choose_columns([profile_column(name, Family.TEXT, column) for name, column in texts.items()])


def check_columns(sheet: Sheet, columns: Iterable[str], settings: Mapping[str, Any]) -> None:
    """Refuse columns and settings that cannot be used; `find_in_sheet` takes the same.

    Raises:
        ConfigError: A setting is wrong.
        UnknownNameError: There is no column of one of the names.
    """
    _key_and_table(sheet, {name: {} for name in columns}, settings)


def risks_of_sheet(sheet: Sheet, found: SheetDuplicates) -> Iterator[str]:
    """Yield a sentence for each thing that makes wrong pairs likely in a sheet of too few rows for frames.

    Nothing is yielded if the scan has measured frames, or if its rule compares texts with their frames.
    """
    frames = found.report.frames
    if frames is not None and not frames.is_measured:
        yield from risks_of_texts(_first_texts(sheet, found.texts), leaves_frames_out=True)


def _first_texts(sheet: Sheet, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the beginnings of the first texts of some columns.

    Rows without any value are passed over: spreadsheets write hundreds of them below the last row.
    """
    filled = (row for row in sheet.rows if any(cell is not None for cell in row))
    rows = list(islice(filled, _SAMPLE_ROWS))
    places = {name: sheet.place(name) for name in columns}
    return {
        name: [canonical_text(row[place], Family.TEXT)[:SAMPLE_CHARACTERS] for row in rows]
        for name, place in places.items()
    }


@contextmanager
def find_in_sheet(
    sheet: Sheet,
    columns: Sequence[str] | Mapping[str, object],
    settings: Mapping[str, Any],
    database: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[SheetDuplicates]:
    """Find the duplicates among the rows of a sheet.

    Args:
        sheet: the rows.
        columns: the names of those to compare, or their settings by name.
        settings: of the table, as in `dedup.toml`.
        database: a SQLite file to make and keep; None: a temporary one, which is gone after the block.
        progress: is called at each step of the scan.

    Raises:
        ConfigError: A setting is wrong, or the file is there already.
        UnknownNameError: There is no column of one of the names.
        TemporaryFolderError: The folder for temporary files is full.
    """
    chosen = dict(columns) if isinstance(columns, Mapping) else {name: {} for name in columns}
    key, watched = _key_and_table(sheet, chosen, settings)
    ranks = None if watched.order is None else _ranks(sheet, watched.order)
    rank = _free_name("order", (*sheet.names, key))
    if ranks is not None:
        watched = watched.model_copy(update={"order": rank})
    with ExitStack() as resources:
        path = _new_file(database, resources)
        opened = resources.enter_context(
            closing(Database(make_url("sqlite://").set(database=str(path)), create=True))
        )
        with ExitStack() as until_answered:
            if database is not None:
                until_answered.callback(_remove, opened, database)
            with opened.translate_driver_errors(), opened.engine.begin() as connection:
                _fill(connection, sheet, key, rank, ranks)
            dedup = Deduplicator(opened, watched, progress=progress)
            dedup.upgrade()
            texts = tuple(name for name, column in watched.columns.items() if column.kind == "text")
            found = SheetDuplicates(dedup, dedup.scan(), _groups(dedup, sheet), texts)
            until_answered.pop_all()
        yield found


def _key_and_table(
    sheet: Sheet, columns: Mapping[str, object], settings: Mapping[str, Any]
) -> tuple[str, WatchedTable]:
    """Return the name of the column of row numbers, and the settings of the table of a sheet."""
    for name in columns:
        sheet.place(name)
    key = _free_name("row", sheet.names)
    watched = watched_table(TABLE_NAME, {**settings, "columns": columns, "key": key})
    for part in watched.within:
        sheet.place(part.column)
    return key, watched


def _groups(dedup: Deduplicator, sheet: Sheet) -> RowGroups:
    ids = [group.group_id for group in dedup.groups()]
    members = (
        [int(key) - sheet.first_row for key in keys]
        for some in batches(ids, _ROWS_A_STATEMENT)
        for keys in dedup.members_of(some).values()
    )
    return RowGroups.of_members(len(sheet.rows), members)


def _new_file(database: Path | None, resources: ExitStack) -> Path:
    if database is None:
        return resources.enter_context(temporary_folder()) / "rows.db"
    check_is_new(database)
    return database


def check_is_new(database: Path) -> None:
    """Refuse a database file that exists.

    Raises:
        ConfigError: it does.
    """
    if database.exists():
        raise ConfigError(
            "{database} is there already: name a file that is not, or remove it", database=database
        )


def _remove(opened: Database, path: Path) -> None:
    """Remove a new file that has no answer, so that the command can be repeated."""
    opened.close()
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _fill(
    connection: Connection, sheet: Sheet, key: str, rank: str, ranks: Sequence[int | None] | None
) -> None:
    """Make the table of the rows, each under its number; values become texts.

    Args:
        connection: to the database.
        sheet: the rows.
        key: the name of the column of their numbers.
        rank: the name of the column of their ranks.
        ranks: one for each row; None: without this column.
    """
    columns: list[Column[Any]] = [Column(name, Text) for name in sheet.names]
    columns += [] if ranks is None else [Column(rank, Integer)]
    rows = Table(TABLE_NAME, MetaData(), Column(key, Integer, primary_key=True), *columns)
    rows.create(connection)
    names = (key, *sheet.names) if ranks is None else (key, *sheet.names, rank)
    ranked = repeat(()) if ranks is None else zip(ranks)
    lines = zip(count(sheet.first_row), sheet.rows, ranked)
    for batch in batches(lines, _ROWS_A_STATEMENT):
        connection.execute(
            insert(rows),
            [dict(zip(names, (number, *map(_cell, row), *more), strict=True)) for number, row, more in batch],
        )


def _ranks(sheet: Sheet, column: str) -> list[int | None]:
    """Return the rank of each value of a column, None for none.

    Numbers, durations and moments have no texts that all sort as they do. Values that cannot be compared with
    each other are ranked by their texts.
    """
    place = sheet.place(column)
    values: list[Any] = [row[place] for row in sheet.rows]
    try:
        return _ranked(values)
    except TypeError:
        return _ranked([_cell(value) for value in values])


def _ranked(values: Sequence[Any]) -> list[int | None]:
    rank_of = {value: rank for rank, value in enumerate(sorted({v for v in values if v is not None}))}
    return [None if value is None else rank_of[value] for value in values]


def _cell(value: Any) -> str | None:
    return None if value is None else canonical_text(value, Family.OTHER)


def _free_name(base: str, taken: Sequence[str]) -> str:
    others = {name.casefold() for name in taken}
    return next(name for n in range(len(others) + 1) if (name := f"{base}{'_number' * n}") not in others)
