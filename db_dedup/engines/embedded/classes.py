"""The classes of exact duplicates of a table, and the pairs of rows that pairs of classes stand for."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.rows.order import receipt_ranks
from db_dedup.records import Family
from db_dedup.records.forms import FORMS, UNKNOWN_FORM, Form
from db_dedup.records.kinds import CONTAINED, KIND_BITS, KINDS, OTHER_PLACE, SECOND_IS_PART, UNKNOWN
from db_dedup.records.pair_columns import PairColumns
from db_dedup.store.pairs import StoredPairs

_NAMES: Final = np.array([None, *KINDS], object)
"""The name of each kind at its packed number."""


_FORM_NAMES: Final = np.array([None, *FORMS], object)
"""The name of each form at its number plus one."""


class Classes(NamedTuple):
    """c classes of n rows; the rows of a class follow each other, in the order in which they were received.

    Attributes:
        ids: int64[c], the ids of the canonical rows, ascending.
        starts: int64[c + 1], class i owns the rows starts[i]:starts[i + 1].
        keys: object[n], row keys.
        forms: int64[n], the numbers of the rows' forms, in the order of the keys; -1 for a row without.
        ranks: int64[n], the places of the rows in the order in which they were received.
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    keys: NDArray[Any]
    forms: NDArray[np.int64]
    ranks: NDArray[np.int64]

    def rows_in_order(self) -> Iterator[list[tuple[str, int]]]:
        """Yield (row key, form) of the rows of each class of several."""
        for one in np.flatnonzero(np.diff(self.starts) > 1).tolist():
            own = slice(self.starts[one], self.starts[one + 1])
            yield list(zip(self.keys[own].tolist(), self.forms[own].tolist(), strict=True))

    def expanded(self, pairs: StoredPairs, most: int) -> Iterator[PairColumns]:
        """Yield every pair of a row of the one class and a row of the other, the earlier row first.

        Args:
            pairs: of classes, by the ids of their canonical rows.
            most: pairs in one part.
        """
        first_a, size_a = self._rows_of(pairs.id_a)
        first_b, size_b = self._rows_of(pairs.id_b)
        ends = np.cumsum(size_a * size_b)
        total = int(ends[-1]) if ends.size else 0
        for start in range(0, total, most):
            numbers = np.arange(start, min(start + most, total))
            which = np.searchsorted(ends, numbers, "right")
            within = numbers - (ends - size_a * size_b)[which]
            one, other = first_a[which] + within // size_b[which], first_b[which] + within % size_b[which]
            yield self._columns(one, other, pairs.only(which))

    def _rows_of(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (int64[p] the first row, int64[p] how many rows) of the classes of these canonical rows."""
        places = np.searchsorted(self.ids, ids)
        # A row that was stored after the classes had been read is in none.
        is_known = np.append(self.ids, -1)[places] == ids
        places = np.where(is_known, places, 0)
        sizes = np.append(np.diff(self.starts), 0)[places]
        return self.starts[places], np.where(is_known, sizes, 0)

    def _columns(self, one: NDArray[np.int64], other: NDArray[np.int64], pairs: StoredPairs) -> PairColumns:
        is_swapped = self.ranks[one] > self.ranks[other]
        keys_one, keys_other = self.keys[one], self.keys[other]
        kinds = pairs.kinds & KIND_BITS
        parts = np.where(pairs.kinds & SECOND_IS_PART, keys_other, keys_one)
        parts[kinds != CONTAINED] = None
        similarities = pairs.similarities.astype(object)
        similarities[np.isnan(pairs.similarities)] = None
        other_places = (pairs.kinds & OTHER_PLACE).astype(np.bool_).astype(object)
        other_places[kinds == UNKNOWN] = None
        return PairColumns(
            np.where(is_swapped, keys_other, keys_one).tolist(),
            np.where(is_swapped, keys_one, keys_other).tolist(),
            pairs.distances.tolist(),
            similarities.tolist(),
            _NAMES[kinds].tolist(),
            parts.tolist(),
            other_places.tolist(),
            forms_of_pairs(self.forms[one], self.forms[other]),
        )


def classes_of(
    class_ids: Sequence[int],
    keys: Sequence[str],
    order_values: Sequence[str | None],
    forms: Sequence[int | None],
    families: Sequence[Family],
) -> Classes:
    """Return the classes of n rows, given in any order.

    Args:
        class_ids: the id of each row's canonical row.
        keys: their row keys.
        order_values: what sorts them by the order column.
        forms: the numbers of their forms.
        families: of the key columns.
    """
    owners = np.array(class_ids, np.int64)
    ranks = receipt_ranks(order_values, keys, families)
    order = np.lexsort((ranks, owners))
    ids, first = np.unique(owners[order], return_index=True)
    # Not np.array(keys, object), which takes all of them for one array of characters if there is one key.
    own_keys = np.empty(len(keys), object)
    own_keys[:] = keys
    own_forms = np.array([UNKNOWN_FORM if form is None else form for form in forms], np.int64)
    starts = np.append(first, owners.size)
    return Classes(ids, starts, own_keys[order], own_forms[order], ranks[order])


def forms_of_pairs(one: NDArray[np.int64], other: NDArray[np.int64]) -> list[Form | None]:
    """Return the form of each of p pairs, given the numbers of their rows, int64[p]."""
    forms = np.where((one < 0) | (other < 0), UNKNOWN_FORM, np.maximum(one, other))
    return _FORM_NAMES[forms + 1].tolist()  # type: ignore[no-any-return] # of an array of objects
