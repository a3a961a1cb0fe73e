"""The last step of a batch: form the groups around the changed rows again, and write them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from db_dedup.engines.embedded.group_match import match_rows
from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.flow.matching.group_changes import SizedGroup, changed_groups
from db_dedup.flow.matching.regrouping import CanonicalRow, Group, regroup
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store import group_history, neighbours
from db_dedup.store.pairs import StoredPairs, read_pairs_of, replace_pairs


@dataclass(frozen=True)
class FormerGroups:
    """The groups that the changed rows were in; a group's id is that of its representative.

    Attributes:
        ids: of all of them.
        abridged: id of an abridged group -> whether it was loose.
    """

    ids: frozenset[int]
    abridged: Mapping[int, bool]


def find_former_groups(scope: BatchScope) -> FormerGroups:
    """Return the groups that the loaded rows are in; call it before the rows are written."""
    ids = {row.group_id for row in scope.rows if row.group_id is not None}
    representatives = neighbours.rows_of_ids(scope.connection, scope.store, sorted(ids))
    return FormerGroups(frozenset(ids), _abridged(representatives))


def loses_connection(
    scope: BatchScope, former: FormerGroups, outdated: Sequence[AnswerRow], demoted: Collection[int]
) -> bool:
    """Return whether an abridged group loses a canonical row.

    Only the pairs that connect such a group are stored. Without one of its rows they may not connect the
    others, so the group must be matched again from the texts.
    """
    lost = [row for row in outdated if row.copy_of is None] + [scope.rows[i] for i in demoted]
    return any(row.group_id in former.abridged for row in lost)


def load_groups(scope: BatchScope, former: FormerGroups) -> Mapping[int, bool]:
    """Load all canonical rows of the groups that the rows of this batch are or were in.

    Returns:
        Id of an abridged group -> whether it was loose.
    """
    ids = former.ids | {row.group_id for row in scope.rows if row.group_id is not None}
    canonical = neighbours.canonical_rows_in_groups(scope.connection, scope.store, sorted(ids))
    scope.rows.load(canonical)
    return {**former.abridged, **_abridged(canonical)}


def _abridged(rows: Collection[AnswerRow]) -> dict[int, bool]:
    return {row.id: bool(row.is_loose) for row in rows if row.is_abridged}


def regroup_rows(
    scope: BatchScope, paired: frozenset[int], searched: frozenset[int], abridged: Mapping[int, bool]
) -> list[Group]:
    """Return the groups of the loaded rows by their stored pairs, and delete pairs that abridged groups omit.

    Args:
        scope: the batch, all rows of its groups loaded.
        paired: ids of the rows in pairs of this batch.
        searched: ids of the rows whose pairs were searched in this batch.
        abridged: as `load_groups` gives it.
    """
    grouped = scope.rows.grouped(row.id for row in scope.canonical_rows())
    pairs = read_pairs_of(scope.connection, scope.store, sorted(paired.union(grouped)))
    has_duplicates = neighbours.having_exact_duplicates(scope.connection, scope.store, grouped)
    has_duplicates |= {row.copy_of for row in scope.rows if row.copy_of is not None}
    # All other rows are in no group. Most changed rows are among them.
    is_with_others = paired.union(grouped, has_duplicates)
    rows = [row for row in scope.canonical_rows() if row.id in is_with_others]
    groups = regroup(
        [CanonicalRow(row.id, scope.received(row), row.group_id, row.id in has_duplicates) for row in rows],
        list(zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True)),
        searched,
        abridged,
        scope.watched.abridge_above,
        scope.rejected_ids(rows),
    )
    _delete_surplus(scope, pairs, groups)
    return groups


def _delete_surplus(scope: BatchScope, pairs: StoredPairs, groups: Sequence[Group]) -> None:
    """Delete the stored pairs that abridged groups do not keep."""
    surplus = {pair for group in groups for pair in group.surplus}
    if surplus:
        ids = zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True)
        is_kept = np.array([pair not in surplus for pair in ids], np.bool_)
        replace_pairs(scope.connection, scope.store, pairs, pairs.only(is_kept), scope.now)


def match_again(scope: BatchScope) -> list[Group]:
    """Match all loaded canonical rows from their texts, as a full scan would; write their pairs."""
    canonical = sorted(scope.canonical_rows(), key=scope.received)
    ids = [row.id for row in canonical]
    scope.texts.read(scope.connection, canonical)
    rejected = scope.rejected_texts(canonical)
    groups, pairs = match_rows(scope.watched, canonical, scope.texts, rejected)
    old = read_pairs_of(scope.connection, scope.store, ids)
    replace_pairs(scope.connection, scope.store, old, pairs, scope.now)
    has_duplicates = neighbours.having_exact_duplicates(scope.connection, scope.store, ids)
    grouped = {member for group in groups for member in group.members}
    alone = [Group(i, [i], False, False, []) for i in ids if i in has_duplicates and i not in grouped]
    return [*groups, *alone]


def write_groups(scope: BatchScope, groups: Sequence[Group]) -> None:
    """Write the group of every loaded row and of its exact duplicates, the sizes of the groups, and what has
    become of former groups."""
    group_of = {member: group.representative for group in groups for member in group.members}
    canonical = scope.canonical_rows()
    moved = [row.id for row in canonical if row.group_id != group_of.get(row.id)]
    for row in canonical:
        scope.rows.put_in_group(row.id, group_of.get(row.id))
    for group in groups:
        first = group.representative
        scope.rows.put_in_group(first, first, group.is_loose, group.is_abridged)
    duplicates = neighbours.exact_duplicates(scope.connection, scope.store, scope.rows.grouped(moved))
    scope.rows.load(duplicates)
    for row in list(scope.rows):
        if row.copy_of is not None:
            scope.rows.put_in_group(row.id, group_of.get(row.copy_of))
    neighbours.write_groups(scope.connection, scope.store, scope.rows.new_groups())
    sizes = _write_sizes(scope, [group.representative for group in groups])
    _write_history(scope, sizes)


def _write_sizes(scope: BatchScope, representatives: Sequence[int]) -> Mapping[int, int]:
    """Write the sizes of the groups of these representatives, and return them."""
    sizes = neighbours.group_sizes(scope.connection, scope.store, representatives)
    changed = [(row.id, sizes.get(row.id)) for row in scope.rows if row.group_size != sizes.get(row.id)]
    neighbours.write_sizes(scope.connection, scope.store, changed)
    return sizes


def _write_history(scope: BatchScope, sizes: Mapping[int, int]) -> None:
    """Write which ids are no longer those of their groups; from numbers that are known, without a query."""
    after = {row_id: SizedGroup(scope.rows[row_id].row_key, size) for row_id, size in sizes.items()}
    changed = changed_groups(scope.rows.moved(), scope.rows.former_groups, after)
    group_history.write_changes(scope.connection, scope.store, changed)
