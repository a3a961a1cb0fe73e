"""The second step of a batch: link every row to the canonical row of its class of exact duplicates."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from db_dedup.engines.embedded.increment.rows import RowChanges
from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.records.fingerprints import AnswerRow, RowFingerprint
from db_dedup.store import neighbours
from db_dedup.store.sketches import drop_sketches


@dataclass(frozen=True)
class CanonicalRows:
    """Which rows have become canonical, and which are no longer canonical.

    Attributes:
        searched: ids of rows that have become canonical or have changed; their pairs must be searched.
        demoted: ids of unchanged rows that were canonical, and are exact duplicates of another row now.
    """

    searched: frozenset[int]
    demoted: frozenset[int]


def load_classes(scope: BatchScope, changes: RowChanges) -> None:
    """Load the canonical rows of all affected classes; of a class that may get another one, load all rows.

    A canonical row in no group has no exact duplicates.
    """
    new: dict[bytes, list[RowFingerprint]] = defaultdict(list)
    for row in changes.current:
        new[row.digest].append(row)
    left = {row.digest for row in changes.outdated if row.group_id is not None}
    digests = {*new, *left} - {NO_FEATURES_DIGEST}
    canonical = neighbours.canonical_rows(scope.connection, scope.store, list(digests))
    scope.rows.load([*canonical, *changes.outdated])
    moved = changes.moved_ids()
    split = [
        row.digest
        for row in canonical
        if row.group_id is not None
        and (row.id in moved or _is_overtaken(scope, row, new.get(row.digest, ())))
    ]
    scope.rows.load(neighbours.rows_of_digests(scope.connection, scope.store, split))


def _is_overtaken(scope: BatchScope, canonical: AnswerRow, rows: Collection[RowFingerprint]) -> bool:
    """Return whether one of these rows was received before the canonical one."""
    return bool(rows) and min(map(scope.received, rows)) < scope.received(canonical)


def link_classes(scope: BatchScope, current: frozenset[int]) -> CanonicalRows:
    """Link the rows of each loaded class to the one that was received first.

    Args:
        scope: the batch, its classes loaded.
        current: ids of the rows that were written in this batch.
    """
    classes: dict[bytes, list[AnswerRow]] = defaultdict(list)
    searched: set[int] = set()
    demoted = []
    for row in scope.rows:
        if row.digest != NO_FEATURES_DIGEST:
            classes[row.digest].append(row)
        elif _becomes_canonical(scope, row, current):
            searched.add(row.id)
    for members in classes.values():
        first, *others = sorted(members, key=scope.received) if len(members) > 1 else members
        if _becomes_canonical(scope, first, current):
            searched.add(first.id)
        for row in others:
            if row.copy_of is None and row.id not in current:
                demoted.append(row.id)
            scope.rows.link(row.id, first.id)
    _follow_in_indexes(scope, searched, demoted)
    neighbours.write_links(scope.connection, scope.store, scope.rows.new_links(), scope.now)
    return CanonicalRows(frozenset(searched), frozenset(demoted))


def _becomes_canonical(scope: BatchScope, row: AnswerRow, current: frozenset[int]) -> bool:
    """Make a row canonical; return True if it was not canonical before or has changed."""
    if row.copy_of is None and row.id not in current:
        return False
    scope.rows.link(row.id, None)
    return True


def _follow_in_indexes(scope: BatchScope, searched: Collection[int], demoted: list[int]) -> None:
    """Keep only canonical rows in the index of fingerprints and in that of sketches."""
    if scope.index is not None:
        scope.index.remove(demoted)
        new = [scope.rows[i] for i in searched]
        scope.index.put({row.id: row.fingerprint for row in new if row.fingerprint is not None})
    if scope.watched.rule.sketches:
        drop_sketches(scope.connection, scope.store, demoted)
