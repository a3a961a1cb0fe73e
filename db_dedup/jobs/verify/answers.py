"""The stored answer and a fresh one in the same form: by numbers of rows that both share."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.scan.row_answers import RowAnswers
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.records.kinds import COPY
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.pairs import StoredPairs, read_pairs
from db_dedup.store.reader import Reader

_PAIR = np.dtype(
    [
        ("a", np.int64),
        ("b", np.int64),
        ("is_link", np.bool_),
        ("d", np.int16),
        ("s", np.float64),
        ("k", np.uint8),
    ]
)


@dataclass(frozen=True)
class Groups:
    """The groups of n rows.

    Attributes:
        of_row: int64[n], the number of the group's representative, `NO_ROW` outside any group.
        is_loose: int64[n], 0 or 1, set at representatives, like the next two; elsewhere 0.
        is_abridged: int64[n], 0 or 1.
        size: int64[n], rows of the group.
    """

    of_row: NDArray[np.int64]
    is_loose: NDArray[np.int64]
    is_abridged: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def none(cls, count: int) -> Self:
        """Return the groups of `count` rows that are all in no group."""
        return cls(np.full(count, NO_ROW, np.int64), *(np.zeros(count, np.int64) for _ in range(3)))

    @property
    def row_count(self) -> int:
        """How many rows there are, in groups or not."""
        return self.of_row.size

    @property
    def is_grouped(self) -> NDArray[np.bool_]:
        """bool[n]: the rows in groups."""
        is_grouped: NDArray[np.bool_] = self.of_row != NO_ROW
        return is_grouped

    @property
    def in_abridged(self) -> NDArray[np.bool_]:
        """bool[n]: the rows of abridged groups."""
        inside = np.zeros(self.row_count, np.bool_)
        inside[self.is_grouped] = self.is_abridged[self.of_row[self.is_grouped]] != 0
        return inside

    def has_other_flags(self, other: Self) -> NDArray[np.bool_]:
        """Return bool[n]: which representatives have other flags, or another size, in `other`."""
        differs: NDArray[np.bool_] = (
            (self.is_loose != other.is_loose)
            | (self.is_abridged != other.is_abridged)
            | (self.size != other.size)
        )
        return differs


@dataclass(frozen=True)
class Answer:
    """An answer on n rows, whose numbers both answers share; `pairs` is _PAIR[p], with the links of exact
    duplicates."""

    pairs: NDArray[np.void]
    groups: Groups


class StoredAnswer:
    """The stored answer, each row under one number: those of the scan first, in their order, then those that
    only our tables know.

    Attributes:
        row_keys: by number; "(no row has the id ...)" for an id that no stored row has.
    """

    def __init__(self, connection: Connection, store: FingerprintStore, scanned: ScannedTable) -> None:
        reader = Reader.of(connection)
        self._pairs, self._rows = read_pairs(connection, store), RowAnswers.read(store, reader)
        self.row_keys = list(scanned.row_keys)
        number_of = {row_key: i for i, row_key in enumerate(self.row_keys)}
        ids, numbers = [], []
        for row_key, row_id in store.read_ids(reader).items():
            if row_key not in number_of:
                number_of[row_key] = len(self.row_keys)
                self.row_keys.append(row_key)
            ids.append(row_id)
            numbers.append(number_of[row_key])
        mentioned = np.concatenate([*self._id_columns()])
        unknown = np.setdiff1d(mentioned[mentioned != NO_ROW], np.array(ids, np.int64)).tolist()
        numbers += range(len(self.row_keys), len(self.row_keys) + len(unknown))
        self.row_keys += [f"(no row has the id {row_id})" for row_id in unknown]
        self._ids = np.array(ids + unknown, np.int64)
        order = np.argsort(self._ids)
        self._ids, self._numbers = self._ids[order], np.array(numbers, np.int64)[order]

    def answer(self) -> Answer:
        """Return the answer by numbers of rows."""
        id_a, id_b, rows, canonical, group_ids = map(self._numbers_of, self._id_columns())
        groups = Groups.none(len(self.row_keys))
        groups.of_row[rows] = group_ids
        for column, stored in (
            (groups.is_loose, self._rows.is_loose),
            (groups.is_abridged, self._rows.is_abridged),
            (groups.size, self._rows.group_size),
        ):
            column[rows] = np.maximum(stored, 0)
        values = self._pairs
        pairs = StoredPairs(id_a, id_b, values.distances, values.similarities, values.kinds)
        is_duplicate = canonical != NO_ROW
        return Answer(_with_links(pairs, canonical[is_duplicate], rows[is_duplicate]), groups)

    def _id_columns(self) -> tuple[NDArray[np.int64], ...]:
        """Return every column of ids: two of the pairs, three of the rows."""
        rows = self._rows
        return self._pairs.id_a, self._pairs.id_b, rows.ids, rows.copy_of, rows.group_id

    def _numbers_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the rows of stored ids; -1 stays -1."""
        found = np.full(ids.size, NO_ROW, np.int64)
        is_set = ids != NO_ROW
        found[is_set] = self._numbers[np.searchsorted(self._ids, ids[is_set])]
        return found


def fresh_answer(scanned: ScannedTable, count: int) -> Answer:
    """Return the answer of a scan on `count` rows, of which those of the scan come first."""
    matches = scanned.matches
    groups, rows = Groups.none(count), np.arange(matches.group_of.size)
    groups.of_row[: rows.size] = matches.group_of
    first = rows[matches.group_of == rows]
    groups.is_loose[first], groups.is_abridged[first] = matches.is_loose[first], matches.is_abridged[first]
    sizes = np.bincount(matches.group_of[matches.group_of != NO_ROW], minlength=rows.size)
    groups.size[first] = sizes[first]
    found = matches.pairs
    pairs = StoredPairs(
        found.left.astype(np.int64),
        found.right.astype(np.int64),
        found.distances,
        found.similarities,
        found.kinds,
    )
    duplicates = np.flatnonzero(matches.copy_of != NO_ROW)
    canonical = matches.copy_of[duplicates].astype(np.int64)
    return Answer(_with_links(pairs, canonical, duplicates), groups)


def _with_links(
    pairs: StoredPairs, canonical: NDArray[np.int64], duplicates: NDArray[np.int64]
) -> NDArray[np.void]:
    """Return the pairs, by numbers, and a link from each canonical row to each of its exact duplicates."""
    records = np.empty(pairs.id_a.size + duplicates.size, _PAIR)
    records["a"] = np.concatenate([pairs.id_a, canonical])
    records["b"] = np.concatenate([pairs.id_b, duplicates])
    records["is_link"] = np.arange(records.size) >= pairs.id_a.size
    records["d"] = np.concatenate([pairs.distances, np.zeros(duplicates.size, np.int16)])
    # NaN is not equal to itself, so that equal pairs would seem to differ.
    records["s"] = np.concatenate([np.nan_to_num(pairs.similarities, nan=-1.0), np.ones(duplicates.size)])
    records["k"] = np.concatenate([pairs.kinds, np.full(duplicates.size, COPY, np.uint8)])
    return records
