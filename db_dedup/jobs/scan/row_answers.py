"""What an answer says of each row, in columns: its canonical row, its group, and the flags of its group."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader

NOT_SET = NO_ROW
"""NULL in a column of numbers."""

_ROWS_A_PART: Final = 10_000


class AnswerValues(NamedTuple):
    """The answer of one row, as the database takes it."""

    id: int
    copy_of: int | None
    group_id: int | None
    is_loose: bool | None
    is_abridged: bool | None
    group_size: int | None


@dataclass(frozen=True)
class RowAnswers:
    """n rows of the fingerprint table, each column int64[n]; `NOT_SET` is NULL.

    Attributes:
        ids: of the rows.
        copy_of: id of the canonical row, set for its exact duplicates.
        group_id: id of the representative.
        is_loose: 0 or 1, set for representatives, like the next two.
        is_abridged: 0 or 1.
        group_size: rows of the group, exact duplicates included.
    """

    ids: NDArray[np.int64]
    copy_of: NDArray[np.int64]
    group_id: NDArray[np.int64]
    is_loose: NDArray[np.int64]
    is_abridged: NDArray[np.int64]
    group_size: NDArray[np.int64]

    @classmethod
    def read(cls, store: FingerprintStore, reader: Reader) -> Self:
        """Return what is stored of the rows that have a canonical row or a group, ascending by id."""
        return cls(*store.read_answer(reader))

    @classmethod
    def of(cls, ids: NDArray[np.int64], scanned: ScannedTable) -> Self:
        """Return the answer of a scan, ascending by id; `ids` are those of its rows, in their order."""
        matches = scanned.matches
        answers = cls.unset(ids)
        for column, rows in ((answers.copy_of, matches.copy_of), (answers.group_id, matches.group_of)):
            is_set = rows >= 0
            column[is_set] = ids[rows[is_set]]
        is_representative = matches.group_of == np.arange(ids.size)
        sizes = np.bincount(matches.group_of[matches.group_of != NO_ROW], minlength=ids.size)
        answers.is_loose[is_representative] = matches.is_loose[is_representative]
        answers.is_abridged[is_representative] = matches.is_abridged[is_representative]
        answers.group_size[is_representative] = sizes[is_representative]
        return answers.only(np.argsort(ids))

    @classmethod
    def unset(cls, ids: NDArray[np.int64]) -> Self:
        """Return an answer of which every column but the ids is NULL."""
        return cls(ids, *(np.full(ids.size, NOT_SET, np.int64) for _ in range(len(fields(cls)) - 1)))

    @classmethod
    def of_links(cls, ids: NDArray[np.int64], copy_of: NDArray[np.int32]) -> Self:
        """Return an answer, ascending by id, that has exact duplicates and no groups.

        Args:
            ids: int64[n], of rows in the order of a scan.
            copy_of: int32[n], the number of each row's canonical row; -1 for others.
        """
        answers = cls.unset(ids)
        is_set = copy_of != NO_ROW
        answers.copy_of[is_set] = ids[copy_of[is_set]]
        return answers.only(np.argsort(ids))

    @property
    def columns(self) -> tuple[NDArray[np.int64], ...]:
        """All columns, in the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Self:
        """Return some of the rows, by a mask or by their positions."""
        return type(self)(*(column[chosen] for column in self.columns))

    def aligned(self, ids: NDArray[np.int64]) -> Self:
        """Return the answer of these ascending ids, NULL where a row has none; they include all own ids."""
        aligned = self.unset(ids)
        places = np.searchsorted(ids, self.ids)
        for column, values in zip(aligned.columns[1:], self.columns[1:], strict=True):
            column[places] = values
        return aligned

    def differs(self, other: Self) -> NDArray[np.bool_]:
        """Return bool[n]: which rows have another answer in `other`, which has the same ids."""
        is_moved = (self.copy_of != other.copy_of) | (self.group_id != other.group_id)
        differs: NDArray[np.bool_] = self.has_other_flags(other) | is_moved
        return differs

    def has_other_flags(self, other: Self) -> NDArray[np.bool_]:
        """Return bool[n]: which representatives have other flags, or another size, in `other`."""
        differs: NDArray[np.bool_] = (
            (self.is_loose != other.is_loose)
            | (self.is_abridged != other.is_abridged)
            | (self.group_size != other.group_size)
        )
        return differs

    def values(self) -> Iterator[AnswerValues]:
        """Yield the rows one by one, as the database takes them."""
        for first in range(0, self.ids.size, _ROWS_A_PART):
            yield from self.only(slice(first, first + _ROWS_A_PART))._part_of_values()

    def _part_of_values(self) -> Iterator[AnswerValues]:
        flags = (self.is_loose, self.is_abridged)
        columns = (
            self.ids.tolist(),
            _or_null(self.copy_of, self.copy_of.tolist()),
            _or_null(self.group_id, self.group_id.tolist()),
            *(_or_null(flag, flag.astype(np.bool_).tolist()) for flag in flags),
            _or_null(self.group_size, self.group_size.tolist()),
        )
        return map(AnswerValues._make, zip(*columns, strict=True))


def side_by_side(one: RowAnswers, other: RowAnswers) -> tuple[RowAnswers, RowAnswers]:
    """Return two answers for the rows of both."""
    ids = np.union1d(one.ids, other.ids)
    return one.aligned(ids), other.aligned(ids)


def _or_null(numbers: NDArray[np.int64], values: list[Any]) -> list[Any]:
    """Return the values with NULL for the numbers that are not set."""
    for place in np.flatnonzero(numbers == NOT_SET).tolist():
        values[place] = None
    return values
