"""How a fresh answer differs from the stored one: for `verify`, and for the preview of a scan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.engines.embedded.table_scan import ScannedTable
from db_dedup.records import AnswerDifferences, Difference, DuplicatePair
from db_dedup.store.fingerprints import FingerprintStore, RowFingerprint
from db_dedup.store.pairs import read_pairs

_T = TypeVar("_T")

SAMPLES: Final = 10
"""How many examples of each difference are shown."""

_NONE = -1
_PAIR = np.dtype([("a", np.int64), ("b", np.int64), ("d", np.int16), ("s", np.float64)])


@dataclass(frozen=True)
class _Answer:
    """An answer on n rows, whose numbers both answers share.

    Attributes:
        pairs: _PAIR[p], the links of copies included (distance 0, similarity 1), sorted.
        group_of: int64[n], the number of the group's representative, -1 outside any group.
        flags: int64[n, 2], is_loose and is_abridged at representatives, else 0.
    """

    pairs: NDArray[np.void]
    group_of: NDArray[np.int64]
    flags: NDArray[np.int64]


def compare_answers(
    connection: Connection, store: FingerprintStore, scanned: ScannedTable
) -> AnswerDifferences:
    """What would change if the fresh answer took the place of the stored one.

    Pairs inside a group that is abridged in both answers are not compared: which of them are stored depends
    on the history.
    """
    numbers = _Numbers(connection, store, scanned)
    old, new = _stored_answer(connection, store, numbers), _fresh_answer(scanned, len(numbers.row_keys))
    is_abridged = _in_abridged(old) & _in_abridged(new)
    old_pairs, new_pairs = (
        answer.pairs[~(is_abridged[answer.pairs["a"]] & is_abridged[answer.pairs["b"]])]
        for answer in (old, new)
    )
    keys = ["a", "b"]
    is_kept = np.isin(new_pairs[keys], old_pairs[keys])
    gained, kept = new_pairs[~is_kept], new_pairs[is_kept]
    lost, changed = old_pairs[~np.isin(old_pairs[keys], new_pairs[keys])], kept[~np.isin(kept, old_pairs)]
    return AnswerDifferences(
        pairs_gained=_difference(map(numbers.pair, gained)),
        pairs_lost=_difference(map(numbers.pair, lost)),
        pairs_changed=_difference(map(numbers.pair, changed)),
        groups_merged=_difference(_merged(old, new, numbers.row_keys)),
        groups_split=_difference(_merged(new, old, numbers.row_keys)),
        groups_changed=_difference(_changed(old, new, numbers.row_keys)),
    )


def compare_rows(connection: Connection, store: FingerprintStore, scanned: ScannedTable) -> Difference[str]:
    """Keys of the rows whose stored fingerprint, digest or order value is not the fresh one, or that are
    stored and gone, or there and not stored."""
    stored = dict(store.read_rows(connection))
    differing = []
    for row in _fresh_rows(scanned):
        old = stored.pop(row.row_key, None)
        if old is None or not old.is_of(row):
            differing.append(row.row_key)
    return _difference(iter([*differing, *stored]))


class _Numbers:
    """One number for each row of either answer; those of the scan come first, in their order."""

    def __init__(self, connection: Connection, store: FingerprintStore, scanned: ScannedTable) -> None:
        number_of = {row_key: i for i, row_key in enumerate(scanned.row_keys)}
        self.row_keys = list(scanned.row_keys)
        self._ids, numbers = [], []
        for row_key, row_id in store.read_ids(connection).items():
            if row_key not in number_of:
                number_of[row_key] = len(self.row_keys)
                self.row_keys.append(row_key)
            self._ids.append(row_id)
            numbers.append(number_of[row_key])
        order = np.argsort(np.array(self._ids, np.int64))
        self._sorted_ids = np.array(self._ids, np.int64)[order]
        self._numbers = np.array(numbers, np.int64)[order]

    def of_ids(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of these stored ids; -1 stays."""
        found = np.full(ids.size, _NONE, np.int64)
        is_set = ids != _NONE
        found[is_set] = self._numbers[np.searchsorted(self._sorted_ids, ids[is_set])]
        return found

    def pair(self, pair: np.void) -> DuplicatePair:
        similarity = float(pair["s"])
        return DuplicatePair(
            self.row_keys[int(pair["a"])],
            self.row_keys[int(pair["b"])],
            int(pair["d"]),
            None if similarity < 0 else similarity,
        )


def _stored_answer(connection: Connection, store: FingerprintStore, numbers: _Numbers) -> _Answer:
    stored, answer = read_pairs(connection, store), store.read_answer(connection)
    rows, originals, groups = (numbers.of_ids(answer[:, i]) for i in (0, 1, 2))
    is_copy = originals != _NONE
    count = len(numbers.row_keys)
    group_of, flags = np.full(count, _NONE, np.int64), np.zeros((count, 2), np.int64)
    group_of[rows] = groups
    flags[rows] = answer[:, 3:] == 1
    pairs = _pairs(
        numbers.of_ids(stored.id_a), numbers.of_ids(stored.id_b), stored.distances, stored.similarities
    )
    return _Answer(_with_links(pairs, rows[is_copy], originals[is_copy]), group_of, flags)


def _fresh_answer(scanned: ScannedTable, count: int) -> _Answer:
    matches = scanned.matches
    group_of, flags = np.full(count, _NONE, np.int64), np.zeros((count, 2), np.int64)
    rows = np.arange(matches.group_of.size)
    group_of[: rows.size] = matches.group_of
    first = rows[matches.group_of == rows]
    flags[first, 0], flags[first, 1] = matches.is_loose[first], matches.is_abridged[first]
    found = matches.pairs
    pairs = _pairs(
        found.left.astype(np.int64), found.right.astype(np.int64), found.distances, found.similarities
    )
    copies = np.flatnonzero(matches.copy_of != _NONE)
    return _Answer(_with_links(pairs, copies, matches.copy_of[copies].astype(np.int64)), group_of, flags)


def _pairs(
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    distances: NDArray[np.int16],
    similarities: NDArray[np.float64],
) -> NDArray[np.void]:
    pairs = np.empty(a.size, _PAIR)
    pairs["a"], pairs["b"], pairs["d"] = a, b, distances
    pairs["s"] = np.nan_to_num(similarities, nan=-1.0)  # NaN equals nothing, not even itself
    return pairs


def _with_links(
    pairs: NDArray[np.void], copies: NDArray[np.int64], originals: NDArray[np.int64]
) -> NDArray[np.void]:
    links = _pairs(originals, copies, np.zeros(copies.size, np.int16), np.ones(copies.size))
    return np.sort(np.concatenate([pairs, links]), order=["a", "b"])


def _in_abridged(answer: _Answer) -> NDArray[np.bool_]:
    inside = np.zeros(answer.group_of.size, np.bool_)
    is_grouped = answer.group_of != _NONE
    inside[is_grouped] = answer.flags[answer.group_of[is_grouped], 1] != 0
    return inside


def _merged(old: _Answer, new: _Answer, row_keys: Sequence[str]) -> Iterator[str]:
    """Representatives of the new groups whose rows were in several groups, or in a group and alone."""
    is_grouped = new.group_of != _NONE
    was_in = np.where(old.group_of == _NONE, np.arange(old.group_of.size), old.group_of)
    both = np.unique(np.stack([new.group_of[is_grouped], was_in[is_grouped]], axis=1), axis=0)
    groups, counts = np.unique(both[:, 0], return_counts=True)
    had_group = np.zeros(old.group_of.size, np.bool_)
    had_group[new.group_of[is_grouped & (old.group_of != _NONE)]] = True
    return (row_keys[g] for g in groups[(counts > 1) & had_group[groups]].tolist())


def _changed(old: _Answer, new: _Answer, row_keys: Sequence[str]) -> Iterator[str]:
    """Representatives, in either answer, of groups that are not the same in members and flags."""
    moved = old.group_of != new.group_of
    differing = {*old.group_of[moved].tolist(), *new.group_of[moved].tolist()} - {_NONE}
    differing |= set(np.flatnonzero(np.any(old.flags != new.flags, axis=1)).tolist())
    return (row_keys[g] for g in sorted(differing))


def _fresh_rows(scanned: ScannedTable) -> Iterator[RowFingerprint]:
    table = scanned.table
    columns = (table.fingerprints.tolist(), table.has_fingerprint.tolist(), table.digests)
    for row_key, order_value, value, has, digest in zip(
        scanned.row_keys, scanned.order_values, *columns, strict=True
    ):
        yield RowFingerprint(row_key, order_value, value if has else None, digest.tobytes())


def _difference(found: Iterator[_T]) -> Difference[_T]:
    samples = list(islice(found, SAMPLES))
    return Difference(len(samples) + sum(1 for _ in found), tuple(samples))
