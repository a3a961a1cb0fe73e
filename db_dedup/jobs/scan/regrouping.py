"""What a scan makes of the groups that are shown before it: ids that are no longer those of their rows."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from db_dedup.flow.matching.group_changes import SizedGroup, changed_groups
from db_dedup.jobs.scan.row_answers import NOT_SET, RowAnswers
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.records.group_history import ChangedGroup
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.group_history import read_keys
from db_dedup.store.reader import Reader


def regrouped(
    reader: Reader, store: FingerprintStore, before: RowAnswers, after: RowAnswers
) -> list[ChangedGroup]:
    """Return what becomes of the groups of an answer under the same recipe.

    Args:
        reader: of our tables; rows that are gone must still be stored.
        store: the table and the recipe.
        before: the stored answer of all rows.
        after: the new one of the same rows, in the same order; NULL for those that are gone.
    """
    old, new = before.group_id, after.group_id
    has_moved = (old != NOT_SET) & (old != new)
    if not has_moved.any():
        return []
    pairs, counts = np.unique(np.stack([old[has_moved], new[has_moved]]), axis=1, return_counts=True)
    touched = np.unique(pairs[pairs != NOT_SET])
    with reader.open() as connection:
        keys = read_keys(connection, store, touched.tolist())
    moved = {
        (group, None if other == NOT_SET else other): count
        for group, other, count in zip(*pairs.tolist(), counts.tolist(), strict=True)
    }
    sized = [
        {
            group: SizedGroup(keys[group], size)
            for group, size in _sizes(groups, touched).items()
            if group in keys
        }
        for groups in (old, new)
    ]
    return changed_groups(moved, *sized)


def regrouped_by_recipe(reader: Reader, shown: FingerprintStore, scanned: ScannedTable) -> list[ChangedGroup]:
    """Return what becomes of the groups that another recipe has found.

    Args:
        reader: of our tables.
        shown: the table and the recipe that serves.
        scanned: the answer of the scan.
    """
    before = _read_groups(reader, shown)
    keys, group_of = scanned.row_keys, scanned.matches.group_of.tolist()
    after = {key: keys[group] for key, group in zip(keys, group_of, strict=True) if group != NOT_SET}
    moved = Counter((group, after.get(key)) for key, group in before.items() if after.get(key) != group)
    sized = [
        {key: SizedGroup(key, size) for key, size in Counter(groups.values()).items()}
        for groups in (before, after)
    ]
    return changed_groups(moved, *sized)


def _sizes(groups: NDArray[np.int64], wanted: NDArray[np.int64]) -> dict[int, int]:
    """Return group -> rows, for those of the wanted groups that have any."""
    found, sizes = np.unique(groups[np.isin(groups, wanted)], return_counts=True)
    return dict(zip(found.tolist(), sizes.tolist(), strict=True))


def _read_groups(reader: Reader, shown: FingerprintStore) -> dict[str, str]:
    """Return row key -> row key of the representative, of the rows in groups."""
    c = shown.tables.fingerprint.c
    query = select(c.id, c.row_key, c.group_id).where(shown.mine, c.group_id.is_not(None))
    rows = list(reader.rows(query, c.id))
    key_of = {row_id: key for row_id, key, _ in rows}
    return {key: key_of[group] for _, key, group in rows if group in key_of}
