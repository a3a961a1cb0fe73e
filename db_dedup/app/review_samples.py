"""What the plots of a review are made from, read in a time that does not grow with the table."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from db_dedup.app.database import Database
from db_dedup.app.table_access import TableAccess
from db_dedup.progress import NullProgress
from db_dedup.records.review_samples import ReviewSample
from db_dedup.store import review_samples
from db_dedup.store.given_keys import read_given
from db_dedup.store.review_samples import SampledRow

_VALUES_OF: Final = 1_000
"""Rows whose values are read."""
_MONTH: Final = len("2026-01")


class ReviewSamples:
    """Reads samples of one watched table."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._access = TableAccess(database, name, None, NullProgress())

    def read(self, column: str) -> ReviewSample:
        """Return counts and samples of a table.

        Args:
            column: whose values to count; if it is none of `columns`, the first of these.
        """
        database = self._database
        with database.translate_driver_errors():
            with database.engine.connect() as connection:
                stored = self._access.require_stored(connection)
                store = self._access.store(stored)
                sizes = review_samples.count_sizes(connection, store)
                distances, is_every_pair = review_samples.sample_distances(connection, store)
                rows, is_every_row = review_samples.sample_rows(connection, store)
                watched, source = self._access.source(connection, stored.watched)
            within = [part.column for part in watched.within]
            of_values = [name for name, settings in watched.columns.items() if settings.kind == "value"]
            columns = tuple(dict.fromkeys([*of_values, *within]))
            chosen = column if column in columns else next(iter(columns), None)
            values: Mapping[str, tuple[int, int]] = {}
            is_every_value = is_every_row
            if chosen is not None:
                some = {row.row_key: row.is_repeat for row in rows[:: max(1, len(rows) // _VALUES_OF)]}
                is_every_value = is_every_row and len(some) == len(rows)
                found = read_given(database.source_engine.connect, source, list(some))
                if chosen in of_values:
                    place = source.value_names.index(chosen)
                    shown = [row.values[place] for row in found]
                else:
                    place = within.index(chosen)
                    shown = [json.loads(row.within)[place] if row.within else "" for row in found]
                repeats = (some[row.row_key] for row in found)
                values = _counted(list(zip(shown, repeats, strict=True)))
        return ReviewSample(
            sizes, distances, is_every_pair, _months(rows), is_every_row, values, is_every_value, columns
        )


def _months(rows: Sequence[SampledRow]) -> dict[str, tuple[int, int]]:
    """Return the counts of each month, in their order; rows without a date are left out."""
    dated = [
        ((row.order_value or "")[:_MONTH], row.is_repeat)
        for row in rows
        if row.order_value and row.order_value[4:5] == "-" and row.order_value[7:8] == "-"
    ]
    return dict(sorted(_counted(dated).items()))


def _counted(rows: Sequence[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    """Return name -> (rows, repeats), the name with most rows first."""
    all_rows = Counter(name for name, _ in rows)
    repeats = Counter(name for name, is_repeat in rows if is_repeat)
    return {name: (count, repeats[name]) for name, count in all_rows.most_common()}
