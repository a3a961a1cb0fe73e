"""Write a scan's answer: only what differs from the one that stands."""

from collections.abc import Collection
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.engines.embedded.table_scan import ScannedTable
from db_dedup.flow.sketches import entries
from db_dedup.jobs.answer_changes import AnswerChanges, count_changes
from db_dedup.store.bands import drop_bands, put_entries, sketched_ids, write_sketches
from db_dedup.store.clock import utc_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.pairs import StoredPairs, read_pairs, replace_pairs

_NONE = -1


def write_answer(
    connection: Connection,
    store: FingerprintStore,
    scanned: ScannedTable,
    changed: Collection[str],
    *,
    serves: bool,
) -> AnswerChanges:
    """Make the stored copies, pairs, groups and bands those of the scan, and forget rows that are gone.

    Args:
        connection: in the transaction of the switch.
        store: the table and recipe.
        scanned: the answer.
        changed: row keys of the rows whose text is another one than that of their stored bands.
        serves: the recipe serves already, so that rows with a sketch stand in the band table.
    """
    now = utc_now()
    id_of = store.read_ids(connection)
    ids = np.array([id_of.pop(row_key) for row_key in scanned.row_keys], np.int64)
    gone = list(id_of.values())
    old_pairs, old_answer = read_pairs(connection, store), store.read_answer(connection)
    found = scanned.matches.pairs
    new_pairs = StoredPairs(ids[found.left], ids[found.right], found.distances, found.similarities)
    gained, lost = replace_pairs(connection, store, old_pairs, new_pairs, now)
    drop_bands(connection, store, gone)
    store.delete_rows(connection, gone)
    _write_bands(connection, store, ids, scanned, changed, serves)
    is_gone = np.isin(old_answer[:, 0], gone)
    before, after = _write_groups(connection, store, ids, scanned, old_answer[~is_gone], now)
    nothing = np.full((np.count_nonzero(is_gone), 6), _NONE, np.int64)
    return count_changes(
        gained, lost, np.concatenate([before, old_answer[is_gone]]), np.concatenate([after, nothing])
    )


def _write_bands(
    connection: Connection,
    store: FingerprintStore,
    ids: NDArray[np.int64],
    scanned: ScannedTable,
    changed: Collection[str],
    serves: bool,
) -> None:
    """Rows that take part in pairs have bands, if the rule asks for them; no others have."""
    has_sketch = np.isin(ids, sketched_ids(connection, store))
    has_entries = has_sketch if serves else np.zeros(ids.size, np.bool_)
    table, wants_bands = scanned.table, wanted_bands(scanned)
    is_changed = np.array([row_key in changed for row_key in scanned.row_keys], np.bool_)
    drop_bands(connection, store, ids[has_entries & (is_changed | ~wants_bands)].tolist())
    losing = has_sketch & ~has_entries & ~wants_bands
    write_sketches(connection, store, [(row_id, None) for row_id in ids[losing].tolist()])
    gaining = wants_bands & (is_changed | ~has_sketch)
    places = table.sketch_places
    gained = map(table.sketches.bytes_of, places[gaining].tolist())
    write_sketches(connection, store, list(zip(ids[gaining].tolist(), gained, strict=True)))
    entering = wants_bands & (is_changed | ~has_entries)
    owners = ids[entering]
    put_entries(
        connection,
        store,
        ((values, owners[rows]) for values, rows in entries(table.sketches, places[entering])),
    )


def wanted_bands(scanned: ScannedTable) -> NDArray[np.bool_]:
    """bool[n]: the rows that are to have bands."""
    table = scanned.table
    takes_part = (scanned.matches.copy_of == _NONE) & table.has_fingerprint
    is_wanted: NDArray[np.bool_] = takes_part & (table.sketch_places != _NONE)
    return is_wanted


def _write_groups(
    connection: Connection,
    store: FingerprintStore,
    ids: NDArray[np.int64],
    scanned: ScannedTable,
    old: NDArray[np.int64],
    now: datetime,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Write what differs, and give it: (before, after), int64[n, 6] each."""
    new = _answer(ids, scanned)
    before = _aligned(old, new[:, 0])
    differs = np.any(before != new, axis=1)
    is_new_link = (new[:, 1] != _NONE) & (before[:, 1] != new[:, 1])
    is_link_gone = (new[:, 1] == _NONE) & (before[:, 1] != _NONE)
    columns = ("copy_of", "group_id", "is_loose", "is_abridged", "group_size")
    for chosen, found_at in ((is_new_link, now), (is_link_gone, None)):
        rows = [(*_plain(row), found_at) for row in new[chosen].tolist()]
        store.dialect.bulk_update(connection, store.tables.fingerprint, "id", (*columns, "found_at"), rows)
    rest = differs & ~is_new_link & ~is_link_gone
    store.dialect.bulk_update(
        connection, store.tables.fingerprint, "id", columns, [_plain(row) for row in new[rest].tolist()]
    )
    return before[differs], new[differs]


def _answer(ids: NDArray[np.int64], scanned: ScannedTable) -> NDArray[np.int64]:
    """int64[n, 6] as `FingerprintStore.read_answer` gives it, for all rows, ascending by id."""
    matches = scanned.matches
    answer = np.full((ids.size, 6), _NONE, np.int64)
    answer[:, 0] = ids
    for column, rows in ((1, matches.copy_of), (2, matches.group_of)):
        is_set = rows >= 0
        answer[is_set, column] = ids[rows[is_set]]
    is_representative = matches.group_of == np.arange(ids.size)
    answer[is_representative, 3] = matches.is_loose[is_representative]
    answer[is_representative, 4] = matches.is_abridged[is_representative]
    sizes = np.bincount(matches.group_of[matches.group_of != _NONE], minlength=ids.size)
    answer[is_representative, 5] = sizes[is_representative]
    return answer[np.argsort(ids)]


def _aligned(old: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The old answer for these ascending ids, NULL where there was none."""
    aligned = np.full((ids.size, 6), _NONE, np.int64)
    aligned[:, 0] = ids
    aligned[np.searchsorted(ids, old[:, 0])] = old
    return aligned


def _plain(row: list[int]) -> tuple[int | bool | None, ...]:
    """A row of an answer as the database takes it."""
    row_id, copy_of, group_id, is_loose, is_abridged, size = row
    return (
        row_id,
        None if copy_of == _NONE else copy_of,
        None if group_id == _NONE else group_id,
        None if is_loose == _NONE else bool(is_loose),
        None if is_abridged == _NONE else bool(is_abridged),
        None if size == _NONE else size,
    )
