"""How a fresh answer differs from the stored one: for `verify`, and for the preview of a scan."""

from collections.abc import Iterator, Set
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.candidates.segments import sums_of_sketches
from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.jobs.scan.sketch_index import wanted_sketches
from db_dedup.jobs.verify.answers import Answer, Groups, StoredAnswer, fresh_answer
from db_dedup.records import AnswerDifferences, Difference, DuplicatePair
from db_dedup.records.fingerprints import RowFingerprint
from db_dedup.records.forms import UNKNOWN_FORM
from db_dedup.records.kinds import PairKind
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.sketch_contents import IndexContents

_T = TypeVar("_T")

SAMPLES: Final = 10
"""How many examples of each difference are shown."""


class _PairDifferences(NamedTuple):
    """Pairs and links that differ, as records of `Answer.pairs`, ordered by the numbers of their rows.

    Attributes:
        changed: as they are in the new answer, also where a pair becomes a link.
    """

    gained: NDArray[np.void]
    lost: NDArray[np.void]
    changed: NDArray[np.void]


def compare_answers(
    connection: Connection, store: FingerprintStore, scanned: ScannedTable
) -> AnswerDifferences:
    """Return what would change if the fresh answer replaced the stored one.

    Pairs inside a group that is abridged in both answers are not compared: which of them are stored depends
    on the order in which the rows were handled.
    """
    stored = StoredAnswer(connection, store, scanned)
    keys = stored.row_keys
    old, new = stored.answer(), fresh_answer(scanned, len(keys))
    pairs = _differing_pairs(old, new)
    return AnswerDifferences(
        pairs_gained=_difference(_named(pair, keys) for pair in pairs.gained),
        pairs_lost=_difference(_named(pair, keys) for pair in pairs.lost),
        pairs_changed=_difference(_named(pair, keys) for pair in pairs.changed),
        groups_gained=_difference(keys[i] for i in _gained(old.groups, new.groups)),
        groups_lost=_difference(keys[i] for i in _gained(new.groups, old.groups)),
        groups_merged=_difference(keys[i] for i in _merged(old.groups, new.groups)),
        groups_split=_difference(keys[i] for i in _merged(new.groups, old.groups)),
        groups_changed=_difference(keys[i] for i in _changed(old.groups, new.groups)),
    )


def compare_rows(
    connection: Connection,
    store: FingerprintStore,
    scanned: ScannedTable,
    index: IndexContents | None,
    unsettled: Set[str] = frozenset(),
) -> Difference[str]:
    """Return the keys of rows that are not stored as they should be.

    Their fingerprint, digest, order value or sketch is not the stored one, or they are only stored, or only
    in the user's table.

    Args:
        connection: to our tables.
        store: the table and the recipe.
        scanned: the fresh answer.
        index: the entries of the rows' sketches; None if they cannot be read.
        unsettled: keys of rows that are not compared, because their changes wait in the queue.
    """
    stored = dict(store.read_rows(connection))
    ids = np.full(len(scanned.row_keys), NO_ROW, np.int64)
    for place, row in enumerate(_fresh_rows(scanned)):
        old = stored.pop(row.row_key, None)
        if old is not None and old.is_of(row):
            ids[place] = old.id
    differs = ids == NO_ROW
    if index is not None:
        sizes, sums = _fresh_sketches(scanned)
        differs[~differs] = index.differing(ids[~differs], sizes[~differs], sums[~differs])
    keys = (scanned.row_keys[place] for place in np.flatnonzero(differs).tolist())
    return _difference(key for key in [*keys, *stored] if key not in unsettled)


def _fresh_sketches(scanned: ScannedTable) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (int64[n] how many hashes each row should have, -1 for no sketch; uint64[n] their checksums)."""
    table, is_wanted = scanned.table, wanted_sketches(scanned.table, scanned.matches.copy_of)
    places = table.sketch_places[is_wanted].astype(np.int64)
    sizes, sums = np.full(is_wanted.size, -1, np.int64), np.zeros(is_wanted.size, np.uint64)
    sizes[is_wanted] = table.sketches.counts[places]
    sums[is_wanted] = sums_of_sketches(table.sketches, places)
    return sizes, sums


def _differing_pairs(old: Answer, new: Answer) -> _PairDifferences:
    is_left_out = old.groups.in_abridged & new.groups.in_abridged
    before, after = (_compared(answer.pairs, is_left_out) for answer in (old, new))
    keys_before, keys_after = (_pair_keys(pairs, old.groups.row_count) for pairs in (before, after))
    _, i, j = np.intersect1d(keys_before, keys_after, assume_unique=True, return_indices=True)
    old_pairs, new_pairs = before[i], after[j]
    differs = np.zeros(i.size, np.bool_)
    for value in ("d", "s", "k"):
        differs |= old_pairs[value] != new_pairs[value]
    gained, lost = after[~np.isin(keys_after, keys_before)], before[~np.isin(keys_before, keys_after)]
    rows_gained, rows_lost = (_pair_keys(pairs, old.groups.row_count) // 2 for pairs in (gained, lost))
    is_other_kind = np.isin(rows_gained, rows_lost)
    changed = np.concatenate([after[j[differs]], gained[is_other_kind]])
    kept_apart = gained[~is_other_kind], lost[~np.isin(rows_lost, rows_gained)], changed
    return _PairDifferences(*(np.sort(pairs, order=["a", "b"]) for pairs in kept_apart))


def _compared(pairs: NDArray[np.void], is_left_out: NDArray[np.bool_]) -> NDArray[np.void]:
    kept: NDArray[np.void] = pairs[pairs["is_link"] | ~(is_left_out[pairs["a"]] & is_left_out[pairs["b"]])]
    return kept


def _pair_keys(pairs: NDArray[np.void], count: int) -> NDArray[np.int64]:
    """Return int64[p]: a number for each pair; a link has another one than a pair of the same rows."""
    keys: NDArray[np.int64] = (pairs["a"] * count + pairs["b"]) * 2 + pairs["is_link"]
    return keys


def _gained(old: Groups, new: Groups) -> list[int]:
    """Return the representatives of the new groups of which no row was in a group."""
    representatives = np.unique(new.of_row[new.is_grouped])
    found: list[int] = representatives[~_holds_grouped(old, new)[representatives]].tolist()
    return found


def _merged(old: Groups, new: Groups) -> list[int]:
    """Return the representatives of new groups whose rows were in several groups, or in one and in none."""
    count = old.row_count
    # A row outside every group is a part of its own.
    was_in = np.where(old.is_grouped, old.of_row, np.arange(count))
    parts = np.unique(new.of_row[new.is_grouped] * count + was_in[new.is_grouped])
    groups, part_counts = np.unique(parts // max(count, 1), return_counts=True)
    found: list[int] = groups[(part_counts > 1) & _holds_grouped(old, new)[groups]].tolist()
    return found


def _holds_grouped(old: Groups, new: Groups) -> NDArray[np.bool_]:
    """Return bool[n]: True at representatives of new groups in which some row was in a group."""
    holds = np.zeros(old.row_count, np.bool_)
    holds[new.of_row[new.is_grouped & old.is_grouped]] = True
    return holds


def _changed(old: Groups, new: Groups) -> list[int]:
    """Return the representatives, in either answer, of groups that differ in members or flags."""
    moved = old.of_row != new.of_row
    differing = {*old.of_row[moved].tolist(), *new.of_row[moved].tolist()} - {NO_ROW}
    differing |= set(np.flatnonzero(old.has_other_flags(new)).tolist())
    return sorted(differing)


def _named(pair: np.void, row_keys: list[str]) -> DuplicatePair:
    similarity, kind = float(pair["s"]), PairKind.of(int(pair["k"]))
    key_a, key_b = row_keys[int(pair["a"])], row_keys[int(pair["b"])]
    return DuplicatePair(
        key_a,
        key_b,
        int(pair["d"]),
        None if similarity < 0 else similarity,
        kind.kind,
        kind.part_of(key_a, key_b),
        kind.other_place,
    )


def _fresh_rows(scanned: ScannedTable) -> Iterator[RowFingerprint]:
    table = scanned.table
    columns = (
        table.fingerprints.tolist(),
        table.has_fingerprint.tolist(),
        table.digests,
        table.forms.tolist(),
    )
    for row_key, order_value, value, has, digest, form in zip(
        scanned.row_keys, scanned.order_values, *columns, strict=True
    ):
        known_form = None if form == UNKNOWN_FORM else form
        yield RowFingerprint(row_key, order_value, value if has else None, digest.tobytes(), known_form)


def _difference(found: Iterator[_T]) -> Difference[_T]:
    samples = list(islice(found, SAMPLES))
    return Difference(len(samples) + sum(1 for _ in found), tuple(samples))
