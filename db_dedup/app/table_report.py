"""What a report says of one table, counted from the stored answer and, by value columns, from its rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from db_dedup.app.arguments import iterable_of
from db_dedup.app.deduplicator import Deduplicator
from db_dedup.app.health import read_health
from db_dedup.app.table_export import OUR_COLUMNS, export_table
from db_dedup.config import PRESETS, WatchedTable
from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.records import Family
from db_dedup.records.reports import RepeatCount, TableReport
from db_dedup.store import group_history
from db_dedup.store import report_counts as counts
from db_dedup.store.clock import utc_now
from db_dedup.store.inspection import check_names
from db_dedup.translation import Phrase

_GROUPS_LISTED: Final = 10
_SCANS_LISTED: Final = 10
_CHANGES_LISTED: Final = 20
_VALUES_LISTED: Final = 15
_LONGEST_LABEL: Final = 40


def report_table(dedup: Deduplicator, by: Sequence[str] | None = None) -> TableReport:
    """Return what is stored of a table in numbers; nothing is written.

    Args:
        dedup: the table.
        by: columns by whose values the rows are counted, for which the whole table is read; None for the
            columns of `within` and those that are compared as values.

    Raises:
        NotScannedError: no scan has finished.
        UnknownNameError: the table has no such column.
    """
    database, access = dedup.database, dedup._access
    with database.translate_driver_errors(), database.engine.connect() as connection:
        stored = access.require_stored(connection)
        watched, source = access.source(connection, stored.watched)
        chosen = (
            _value_columns(watched) if by is None else list(iterable_of(by, "by", Phrase("column names")))
        )
        check_names(chosen, source.table)
        store = access.store(stored)
        (status,) = (
            s for s in read_health(connection, database.dialect, database.tables) if s.table == watched.name
        )
        order = source.order_column
        has_dates = order is not None and order.family is Family.DATE
        rule = watched.rule
        found = TableReport(
            table=watched.name,
            made_at=utc_now(),
            preset=next((name for name, preset in PRESETS.items() if preset == rule), None),
            rule=None if rule.similarity == NO_SIMILARITY else (rule.similarity, rule.threshold),
            status=status,
            distances=counts.count_distances(connection, store),
            similarities=counts.count_similarities(connection, store),
            kinds=counts.count_kinds(connection, store),
            other_place_pairs=counts.count_other_places(connection, store),
            months=tuple(counts.count_months(connection, store)) if has_dates else (),
            values={},
            loose=tuple(counts.loose_groups(connection, store, _GROUPS_LISTED)),
            other_places=tuple(counts.other_place_groups(connection, store, _GROUPS_LISTED)),
            changed_ids=tuple(
                group_history.count_changes(connection, database.tables, stored.id, _SCANS_LISTED)
            ),
            latest_changes=tuple(
                group_history.read_latest(connection, database.tables, stored.id, _CHANGES_LISTED)
            ),
        )
    return replace(found, values=_count_values(dedup, chosen))


def _value_columns(watched: WatchedTable) -> list[str]:
    values = [name for name, column in watched.columns.items() if column.kind == "value"]
    return list(dict.fromkeys([*(part.column for part in watched.within if part.by == "value"), *values]))


def _count_values(dedup: Deduplicator, columns: Sequence[str]) -> dict[str, tuple[RepeatCount, ...]]:
    """Return column -> its most frequent values, from one pass over the table."""
    if not columns:
        return {}
    rows: list[Counter[int | None]] = [Counter() for _ in columns]
    repeats: list[Counter[int | None]] = [Counter() for _ in columns]
    labels: list[dict[int | None, str | None]] = [{None: None} for _ in columns]
    is_first = OUR_COLUMNS.index("is_representative")
    for row in export_table(dedup, columns, order="key").rows:
        for place, value in enumerate(row[len(OUR_COLUMNS) :]):
            text = None if value is None else str(value)
            key = None if text is None else hash(text)  # in place of long texts, which may be all different
            rows[place][key] += 1
            if text is not None:
                labels[place].setdefault(key, _label(text))
            if not row[is_first]:
                repeats[place][key] += 1
    return {
        name: tuple(
            RepeatCount(label[key], count, again[key]) for key, count in of.most_common(_VALUES_LISTED)
        )
        for name, of, again, label in zip(columns, rows, repeats, labels, strict=True)
    }


def _label(text: str) -> str:
    """Return a value as it is listed; a long one is cut, which its last character tells."""
    return text if len(text) <= _LONGEST_LABEL else f"{text[:_LONGEST_LABEL]}…"
