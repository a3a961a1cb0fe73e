"""How a fresh answer differs from the stored one: for `verify`, and for the preview of a scan."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.engines.embedded.table_scan import ScannedTable
from db_dedup.jobs.answer import wanted_bands
from db_dedup.records import AnswerDifferences, Difference, DuplicatePair
from db_dedup.store.fingerprints import FingerprintStore, RowFingerprint
from db_dedup.store.pairs import StoredPairs, read_pairs
from db_dedup.store.reader import Reader

_T = TypeVar("_T")

SAMPLES: Final = 10
"""How many examples of each difference are shown."""

_NONE = -1
_PAIR = np.dtype(
    [("a", np.int64), ("b", np.int64), ("is_link", np.bool_), ("d", np.int16), ("s", np.float64)]
)


@dataclass(frozen=True)
class _Answer:
    """An answer on n rows, whose numbers both answers share.

    Attributes:
        pairs: _PAIR[p], the links of copies among them.
        group_of: int64[n], the number of the group's representative, -1 outside any group.
        flags: int64[n, 3], is_loose, is_abridged and the size at representatives, else 0.
    """

    pairs: NDArray[np.void]
    group_of: NDArray[np.int64]
    flags: NDArray[np.int64]

    @property
    def in_abridged(self) -> NDArray[np.bool_]:
        """bool[n]: the rows of abridged groups."""
        inside = np.zeros(self.group_of.size, np.bool_)
        is_grouped = self.group_of != _NONE
        inside[is_grouped] = self.flags[self.group_of[is_grouped], 1] != 0
        return inside


def compare_answers(
    connection: Connection, store: FingerprintStore, scanned: ScannedTable
) -> AnswerDifferences:
    """What would change if the fresh answer took the place of the stored one.

    Pairs inside a group that is abridged in both answers are not compared: which of them are stored depends
    on the history.
    """
    stored = _Stored(connection, store, scanned)
    keys = stored.row_keys
    old, new = stored.answer(), _fresh_answer(scanned, len(keys))
    gained, lost, changed = _differing_pairs(old, new)
    return AnswerDifferences(
        pairs_gained=_difference(_named(pair, keys) for pair in gained),
        pairs_lost=_difference(_named(pair, keys) for pair in lost),
        pairs_changed=_difference(_named(pair, keys) for pair in changed),
        groups_gained=_difference(keys[i] for i in _gained(old, new)),
        groups_lost=_difference(keys[i] for i in _gained(new, old)),
        groups_merged=_difference(keys[i] for i in _merged(old, new)),
        groups_split=_difference(keys[i] for i in _merged(new, old)),
        groups_changed=_difference(keys[i] for i in _changed(old, new)),
    )


def compare_rows(connection: Connection, store: FingerprintStore, scanned: ScannedTable) -> Difference[str]:
    """Keys of the rows whose stored fingerprint, digest, bands or order value are not the fresh ones, or that
    are stored and gone, or there and not stored."""
    stored = dict(store.read_rows(connection))
    differing = []
    for row in _fresh_rows(scanned):
        old = stored.pop(row.row_key, None)
        if old is None or not old.is_of(row) or old.sketch != row.sketch:
            differing.append(row.row_key)
    return _difference(iter([*differing, *stored]))


class _Stored:
    """The stored answer, each row under one number: those of the scan first, in their order, then those that
    only our tables know.

    Attributes:
        row_keys: by number; an id that no stored row has is told as such.
    """

    def __init__(self, connection: Connection, store: FingerprintStore, scanned: ScannedTable) -> None:
        reader = Reader.of(connection)
        self._pairs, self._rows = read_pairs(connection, store), store.read_answer(reader)
        self.row_keys = list(scanned.row_keys)
        number_of = {row_key: i for i, row_key in enumerate(self.row_keys)}
        ids, numbers = [], []
        for row_key, row_id in store.read_ids(reader).items():
            if row_key not in number_of:
                number_of[row_key] = len(self.row_keys)
                self.row_keys.append(row_key)
            ids.append(row_id)
            numbers.append(number_of[row_key])
        mentioned = np.concatenate([self._pairs.id_a, self._pairs.id_b, self._rows[:, :3].ravel()])
        unknown = np.setdiff1d(mentioned[mentioned != _NONE], np.array(ids, np.int64)).tolist()
        numbers += range(len(self.row_keys), len(self.row_keys) + len(unknown))
        self.row_keys += [f"(no row has the id {row_id})" for row_id in unknown]
        self._ids = np.array(ids + unknown, np.int64)
        order = np.argsort(self._ids)
        self._ids, self._numbers = self._ids[order], np.array(numbers, np.int64)[order]

    def answer(self) -> _Answer:
        """The answer by numbers."""
        rows, originals, groups = (self._numbers_of(self._rows[:, i]) for i in (0, 1, 2))
        count = len(self.row_keys)
        group_of, flags = np.full(count, _NONE, np.int64), np.zeros((count, 3), np.int64)
        group_of[rows] = groups
        flags[rows] = np.maximum(self._rows[:, 3:], 0)
        found = self._pairs
        pairs = StoredPairs(
            self._numbers_of(found.id_a), self._numbers_of(found.id_b), found.distances, found.similarities
        )
        is_copy = originals != _NONE
        return _Answer(_with_links(pairs, originals[is_copy], rows[is_copy]), group_of, flags)

    def _numbers_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of stored ids; -1 stays."""
        found = np.full(ids.size, _NONE, np.int64)
        is_set = ids != _NONE
        found[is_set] = self._numbers[np.searchsorted(self._ids, ids[is_set])]
        return found


def _fresh_answer(scanned: ScannedTable, count: int) -> _Answer:
    matches = scanned.matches
    group_of, flags = np.full(count, _NONE, np.int64), np.zeros((count, 3), np.int64)
    rows = np.arange(matches.group_of.size)
    group_of[: rows.size] = matches.group_of
    first = rows[matches.group_of == rows]
    sizes = np.bincount(matches.group_of[matches.group_of != _NONE], minlength=rows.size)
    flags[first] = np.stack([matches.is_loose[first], matches.is_abridged[first], sizes[first]], axis=1)
    found = matches.pairs
    pairs = StoredPairs(
        found.left.astype(np.int64), found.right.astype(np.int64), found.distances, found.similarities
    )
    copies = np.flatnonzero(matches.copy_of != _NONE)
    return _Answer(_with_links(pairs, matches.copy_of[copies].astype(np.int64), copies), group_of, flags)


def _with_links(
    pairs: StoredPairs, originals: NDArray[np.int64], copies: NDArray[np.int64]
) -> NDArray[np.void]:
    """The pairs, by numbers, and a link from each copied row to its copy."""
    records = np.empty(pairs.id_a.size + copies.size, _PAIR)
    records["a"] = np.concatenate([pairs.id_a, originals])
    records["b"] = np.concatenate([pairs.id_b, copies])
    records["is_link"] = np.arange(records.size) >= pairs.id_a.size
    records["d"] = np.concatenate([pairs.distances, np.zeros(copies.size, np.int16)])
    # NaN equals nothing, not even itself
    records["s"] = np.concatenate([np.nan_to_num(pairs.similarities, nan=-1.0), np.ones(copies.size)])
    return records


def _differing_pairs(
    old: _Answer, new: _Answer
) -> tuple[NDArray[np.void], NDArray[np.void], NDArray[np.void]]:
    """(gained, lost, changed) pairs and links, by numbers; changed ones as they are in the new answer, also
    where a pair becomes a link."""
    is_left_out = old.in_abridged & new.in_abridged
    before, after = (_compared(answer.pairs, is_left_out) for answer in (old, new))
    keys_before, keys_after = (_pair_keys(pairs, old.group_of.size) for pairs in (before, after))
    _, i, j = np.intersect1d(keys_before, keys_after, assume_unique=True, return_indices=True)
    differs = (before["d"][i] != after["d"][j]) | (before["s"][i] != after["s"][j])
    gained, lost = after[~np.isin(keys_after, keys_before)], before[~np.isin(keys_before, keys_after)]
    rows_gained, rows_lost = (_pair_keys(pairs, old.group_of.size) // 2 for pairs in (gained, lost))
    is_other_kind = np.isin(rows_gained, rows_lost)
    changed = np.concatenate([after[j[differs]], gained[is_other_kind]])
    kept_apart = gained[~is_other_kind], lost[~np.isin(rows_lost, rows_gained)], changed
    gained, lost, changed = (np.sort(pairs, order=["a", "b"]) for pairs in kept_apart)
    return gained, lost, changed


def _compared(pairs: NDArray[np.void], is_left_out: NDArray[np.bool_]) -> NDArray[np.void]:
    kept: NDArray[np.void] = pairs[pairs["is_link"] | ~(is_left_out[pairs["a"]] & is_left_out[pairs["b"]])]
    return kept


def _pair_keys(pairs: NDArray[np.void], count: int) -> NDArray[np.int64]:
    """One number for each pair; a link is apart from a pair of the same rows."""
    keys: NDArray[np.int64] = (pairs["a"] * count + pairs["b"]) * 2 + pairs["is_link"]
    return keys


def _gained(old: _Answer, new: _Answer) -> list[int]:
    """Representatives of the new groups none of whose rows was in a group."""
    groups = np.unique(new.group_of[new.group_of != _NONE])
    found: list[int] = groups[~_holds_grouped(old, new)[groups]].tolist()
    return found


def _merged(old: _Answer, new: _Answer) -> list[int]:
    """Representatives of the new groups whose rows were in several groups, or in a group and in none."""
    count = old.group_of.size
    is_grouped = new.group_of != _NONE
    # A row outside every group is a part of its own.
    was_in = np.where(old.group_of == _NONE, np.arange(count), old.group_of)
    parts = np.unique(new.group_of[is_grouped] * count + was_in[is_grouped])
    groups, part_counts = np.unique(parts // max(count, 1), return_counts=True)
    found: list[int] = groups[(part_counts > 1) & _holds_grouped(old, new)[groups]].tolist()
    return found


def _holds_grouped(old: _Answer, new: _Answer) -> NDArray[np.bool_]:
    """bool[n]: True at representatives of new groups in which some row was in a group."""
    holds = np.zeros(old.group_of.size, np.bool_)
    holds[new.group_of[(new.group_of != _NONE) & (old.group_of != _NONE)]] = True
    return holds


def _changed(old: _Answer, new: _Answer) -> list[int]:
    """Representatives, in either answer, of groups that are not the same in members and flags."""
    moved = old.group_of != new.group_of
    differing = {*old.group_of[moved].tolist(), *new.group_of[moved].tolist()} - {_NONE}
    differing |= set(np.flatnonzero(np.any(old.flags != new.flags, axis=1)).tolist())
    return sorted(differing)


def _named(pair: np.void, row_keys: list[str]) -> DuplicatePair:
    similarity = float(pair["s"])
    return DuplicatePair(
        row_keys[int(pair["a"])],
        row_keys[int(pair["b"])],
        int(pair["d"]),
        None if similarity < 0 else similarity,
    )


def _fresh_rows(scanned: ScannedTable) -> Iterator[RowFingerprint]:
    table = scanned.table
    places = np.where(wanted_bands(scanned), table.sketch_places, _NONE).tolist()
    columns = (table.fingerprints.tolist(), table.has_fingerprint.tolist(), table.digests, places)
    for row_key, order_value, value, has, digest, place in zip(
        scanned.row_keys, scanned.order_values, *columns, strict=True
    ):
        sketch = None if place == _NONE else table.sketches.bytes_of(place)
        yield RowFingerprint(row_key, order_value, value if has else None, digest.tobytes(), sketch)


def _difference(found: Iterator[_T]) -> Difference[_T]:
    samples = list(islice(found, SAMPLES))
    return Difference(len(samples) + sum(1 for _ in found), tuple(samples))
