"""In what the answer of a scan differs from that of another recipe, whose rows have other ids.

Pairs and links of exact duplicates count by their rows alone. Under another recipe nearly every distance is
another one, so that otherwise all pairs would count as lost and gained.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from db_dedup.dialects.batches import batches
from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.scan.answer_changes import AnswerChanges, count_changed_groups
from db_dedup.jobs.scan.row_answers import NOT_SET, RowAnswers, side_by_side
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader

_IDS_A_QUERY: Final = 1_000
_PAIRS_A_PART: Final = 1_000_000


def changes_by_recipe(
    reader: Reader, shown: FingerprintStore, scanned: ScannedTable, ids: NDArray[np.int64]
) -> AnswerChanges:
    """Count the difference of an answer from the one that another recipe shows.

    Args:
        reader: of our tables.
        shown: the table and the recipe that serves.
        scanned: the answer of the scan.
        ids: int64[n], of the rows of the scan, in its order.
    """
    rows = _ShownRows.read(reader, shown, scanned.row_keys)
    answer = RowAnswers.of(ids, scanned)
    in_groups = answer.only(answer.group_id != NOT_SET)  # most rows of a large table are in none
    old, new = side_by_side(rows.moved(RowAnswers.read(shown, reader), ids), in_groups)
    differs = old.differs(new)
    groups_changed = count_changed_groups(old.only(differs), new.only(differs))
    keys = [_keys(rows.place_of(a), rows.place_of(b), ids.size) for a, b in _pairs(reader, shown, rows.ids)]
    before = np.concatenate([np.empty(0, np.int64), *keys])
    stored = np.sort(before[before != NOT_SET])
    found = kept = 0
    for left, right in _found(scanned):
        found += left.size
        kept += _count_among(stored, _keys(left, right, ids.size))
    return AnswerChanges(found - kept, before.size - kept, groups_changed)


@dataclass(frozen=True)
class _ShownRows:
    """The m rows that are in groups under the recipe that serves.

    Attributes:
        ids: int64[m], ascending.
        places: int64[m], the number of each in the order of the scan; `NO_ROW` if it is gone.
    """

    ids: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def read(cls, reader: Reader, shown: FingerprintStore, row_keys: Sequence[str]) -> Self:
        """Find the rows among those of a scan, by their keys."""
        c = shown.tables.fingerprint.c
        query = select(c.id, c.row_key).where(shown.mine, c.group_id.is_not(None))
        id_of = {key: row_id for row_id, key in reader.rows(query, c.id)}
        ids = np.sort(np.fromiter(id_of.values(), np.int64, len(id_of)))
        places = np.full(ids.size, NO_ROW, np.int64)
        met = [(id_of[key], place) for place, key in enumerate(row_keys) if key in id_of]
        if met:
            met_ids, met_places = np.array(met, np.int64).T
            places[np.searchsorted(ids, met_ids)] = met_places
        return cls(ids, places)

    def place_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[k]: the places of some rows; `NO_ROW` for one that came into a group meanwhile."""
        if not self.ids.size:
            return np.full(ids.size, NO_ROW, np.int64)
        found = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        return np.where(self.ids[found] == ids, self.places[found], NO_ROW)

    def moved(self, answers: RowAnswers, new_ids: NDArray[np.int64]) -> RowAnswers:
        """Return the answer under the ids of the scan; a row that is gone gets a number that no row has."""

        def moved(column: NDArray[np.int64]) -> NDArray[np.int64]:
            places = self.place_of(column)
            result = np.where(column == NOT_SET, NOT_SET, NOT_SET - 1 - column)
            result[places != NO_ROW] = new_ids[places[places != NO_ROW]]
            return result

        columns = (answers.ids, answers.copy_of, answers.group_id)
        own, copy_of, group_id = map(moved, columns)
        return replace(answers, ids=own, copy_of=copy_of, group_id=group_id).only(np.argsort(own))


def _pairs(
    reader: Reader, shown: FingerprintStore, ids: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the stored pairs and links whose first row is one of these, as ids of both rows."""
    pair, row = shown.tables.pair.c, shown.tables.fingerprint.c
    is_one_of = shown.dialect.is_one_of
    queries = (
        select(pair.id_a, pair.id_b).where(is_one_of(pair.id_a, "ids")),
        select(row.id, row.copy_of).where(is_one_of(row.id, "ids"), row.copy_of.is_not(None)),
    )
    for some in batches(ids.tolist(), _IDS_A_QUERY):
        with reader.open() as connection:
            for query in queries:
                found = [tuple(each) for each in connection.execute(query, {"ids": some})]
                a, b = np.array(found, np.int64).reshape(-1, 2).T
                yield a, b


def _found(scanned: ScannedTable) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs and links of a scan, as places of both rows; the pairs may be in temporary files."""
    pairs, copy_of = scanned.matches.pairs, scanned.matches.copy_of
    for first in range(0, pairs.left.size, _PAIRS_A_PART):
        part = slice(first, first + _PAIRS_A_PART)
        yield pairs.left[part].astype(np.int64), pairs.right[part].astype(np.int64)
    copies = np.flatnonzero(copy_of != NO_ROW)
    yield copies, copy_of[copies].astype(np.int64)


def _keys(a: NDArray[np.int64], b: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return int64[p]: one number for each pair of places, whatever their order; -1 if a row is gone."""
    first, second = np.minimum(a, b), np.maximum(a, b)
    return np.where(first == NO_ROW, NOT_SET, first * count + second)


def _count_among(ascending: NDArray[np.int64], keys: NDArray[np.int64]) -> int:
    """Return how many of the keys are among the ascending ones."""
    if not ascending.size:
        return 0
    places = np.minimum(np.searchsorted(ascending, keys), ascending.size - 1)
    return int(np.count_nonzero(ascending[places] == keys))
