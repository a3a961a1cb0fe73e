"""The last step of a batch: form the groups around the changed rows again, and write them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from db_dedup.engines.embedded.group_match import match_rows
from db_dedup.engines.embedded.increment.exact_duplicates import CanonicalRows
from db_dedup.engines.embedded.increment.pairs import BatchPairs, having, pair_ids
from db_dedup.engines.embedded.increment.partial import (
    LostRows,
    PartialGroup,
    load_rejected,
    partial_group,
)
from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.flow.matching.group_changes import SizedGroup, changed_groups
from db_dedup.flow.matching.regrouping import CanonicalRow, Group, PairIds, regroup
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store import group_history, neighbours
from db_dedup.store.pairs import (
    NO_PAIRS,
    StoredPairs,
    concatenate_pairs,
    distinct_pairs,
    read_pairs_of,
    read_pairs_within,
    replace_pairs,
)


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


def form_groups(
    scope: BatchScope,
    former: FormerGroups,
    outdated: Sequence[AnswerRow],
    canonical: CanonicalRows,
    pairs: BatchPairs,
) -> list[Group]:
    """Form the groups around the changed rows again, and write the pairs.

    Of an abridged group only the pairs that connect it are stored. It is loaded only as far as needed if it
    keeps its representative, and what has changed shows that the rest of it stays connected. Otherwise it is
    loaded whole, and matched again from the texts if it has lost a row.

    Args:
        scope: the batch, its rows written and linked.
        former: the groups before that.
        outdated: rows as they were stored that have changed or are gone.
        canonical: the rows whose pairs were searched, and those that are no longer canonical.
        pairs: what was found; pairs that connect abridged groups are added.
    """
    ids = former.ids | {row.group_id for row in scope.rows if row.group_id is not None}
    known = neighbours.rows_of_ids(scope.connection, scope.store, sorted(ids))
    abridged = {**former.abridged, **_abridged(known)}
    lost_rows = [row for row in outdated if row.copy_of is None] + [scope.rows[i] for i in canonical.demoted]
    lost = LostRows.find(scope, abridged, lost_rows, canonical.searched)
    partial: dict[int, PartialGroup] = {}
    for row in known:
        if row.id in abridged and row.id not in pairs.affected and row.copy_of is None:
            scope.rows.load([row])
            group = partial_group(scope, pairs, row.id, abridged[row.id], lost)
            if group is not None:
                partial[row.id] = group
    # A row may equal its stored text again after it was left out of a search, so it may be found only now.
    late = {row.group_id for row in scope.rows if row.group_id is not None} - ids
    abridged |= _abridged(neighbours.rows_of_ids(scope.connection, scope.store, sorted(late)))
    return _Regrouping(scope, pairs, canonical.searched, abridged, lost, partial).groups(ids | late)


def _abridged(rows: Collection[AnswerRow]) -> dict[int, bool]:
    return {row.id: bool(row.is_loose) for row in rows if row.is_abridged}


class _Regrouping:
    """Forms the groups of one batch."""

    def __init__(
        self,
        scope: BatchScope,
        pairs: BatchPairs,
        searched: frozenset[int],
        abridged: Mapping[int, bool],
        lost: LostRows,
        partial: dict[int, PartialGroup],
    ) -> None:
        self._scope, self._pairs, self._searched = scope, pairs, searched
        self._lost, self._partial = lost, partial
        self._abridged = abridged
        self._loaded: set[int | None] = set()
        self._stored = NO_PAIRS

    def groups(self, ids: Collection[int]) -> list[Group]:
        """Return the groups of all loaded rows, and write the pairs.

        Args:
            ids: of the groups that the rows of this batch are or were in.
        """
        if self._partial:
            load_rejected(self._scope, self._partial)
        missing = set(ids).difference(self._partial)
        while True:
            self._load(missing)
            groups, needed = self._regroup()
            again = self._matched_again(groups)
            missing = self._unfit(groups, again)
            if not missing:
                break
            for group in missing:
                del self._partial[group]
        if again:
            groups, needed = self._match_again(groups, needed, again)
        old = distinct_pairs(concatenate_pairs([self._stored, self._pairs.old]))
        surplus = {pair for group in groups for pair in group.surplus}
        kept = np.array([pair not in surplus for pair in pair_ids(needed)], np.bool_)
        replace_pairs(self._scope.connection, self._scope.store, old, needed.only(kept), self._scope.now)
        return groups

    def _load(self, ids: Collection[int]) -> None:
        """Load all canonical rows of some groups."""
        scope = self._scope
        scope.rows.load(neighbours.canonical_rows_in_groups(scope.connection, scope.store, sorted(ids)))
        self._loaded.update(ids)

    def _read_pairs(self, ids: Sequence[int]) -> StoredPairs:
        """Return the stored pairs of some rows, as far as the batch has not read them: those of changed rows.

        Of a group that is loaded whole, both rows of all other pairs are loaded.
        """
        scope = self._scope
        unchanged = [i for i in ids if i not in self._pairs.affected]
        within = [i for i in unchanged if scope.rows[i].group_id in self._loaded]
        others = [i for i in unchanged if scope.rows[i].group_id not in self._loaded]
        parts = (
            read_pairs_within(scope.connection, scope.store, within),
            read_pairs_of(scope.connection, scope.store, others),
        )
        return distinct_pairs(concatenate_pairs(parts))

    def _part_of(self, row: AnswerRow) -> int | None:
        """Return the part of its partly loaded group that a row is in; None if it is in none."""
        group = self._partial.get(row.group_id) if row.group_id is not None else None
        return None if group is None or row.id in self._pairs.affected else group.part_of(row.id)

    def _regroup(self) -> tuple[list[Group], StoredPairs]:
        """Return the groups of the loaded rows, and their pairs as far as they are known."""
        scope, found = self._scope, self._pairs.found
        parts = {row.id: self._part_of(row) for row in scope.canonical_rows()}
        whole = scope.rows.grouped(row_id for row_id, part in parts.items() if part is None)
        self._stored = self._read_pairs(whole)
        stays = ~having(self._stored, self._pairs.affected)
        known = distinct_pairs(concatenate_pairs([self._stored.only(stays), found]))
        has_duplicates = neighbours.having_exact_duplicates(scope.connection, scope.store, whole)
        has_duplicates.update(row.copy_of for row in scope.rows if row.copy_of is not None)
        bridges = {pair for group in self._partial.values() for pair in group.bridges}
        needed = self._needed(known, parts, bridges)
        rejected = scope.rejected_ids(scope.canonical_rows())
        # All other rows are in no group, or stay in a group that is loaded in part. Most rows are among them.
        wanted = has_duplicates.union(whole, self._partial, *pair_ids(needed), *rejected)
        # All pairs of these rows are known, so nothing is inferred from the group that they were in.
        apart = self._pairs.affected.union(*(group.split_off for group in self._partial.values()))
        rows = [
            CanonicalRow(
                row.id,
                scope.received(row),
                None if row.id in apart else row.group_id,
                row.id in has_duplicates,
                parts[row.id],
            )
            for row in scope.canonical_rows()
            if row.id in wanted
        ]
        loose = {**self._abridged, **{i: group.is_loose for i, group in self._partial.items()}}
        limit = scope.watched.abridge_above
        groups = regroup(rows, pair_ids(needed), self._searched, loose, limit, rejected, bridges)
        others: dict[int | None, list[int]] = {}
        for row in scope.canonical_rows():
            if row.id not in wanted and parts[row.id] is not None:
                others.setdefault(row.group_id, []).append(row.id)
        for group in groups:
            group.members.extend(others.get(group.representative, ()))
        return groups, needed

    def _needed(
        self, pairs: StoredPairs, parts: Mapping[int, int | None], bridges: Collection[PairIds]
    ) -> StoredPairs:
        """Return the pairs without those that an abridged group does not keep in any case.

        Of a row and a part of a group one pair is enough: that with the representative, which tells whether
        they are similar, or else any.
        """
        in_parts = sorted((row_id, part) for row_id, part in parts.items() if part is not None)
        if not in_parts:
            return pairs
        ids, numbers = np.array(in_parts, np.int64).T
        ends = []
        for side in (pairs.id_a, pairs.id_b):
            places = np.minimum(np.searchsorted(ids, side), ids.size - 1)
            ends.append(np.where(ids[places] == side, numbers[places], side))
        low, high = np.minimum(*ends), np.maximum(*ends)
        order = np.lexsort((~having(pairs, self._partial), high, low))
        is_first = np.ones(order.size, np.bool_)
        is_first[1:] = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
        is_needed = np.zeros(order.size, np.bool_)
        is_needed[order] = is_first
        is_needed &= low != high
        # The ends of pairs within the groups that are loaded whole are rows of their own.
        is_bridge = np.array([(min(pair), max(pair)) in bridges for pair in pair_ids(pairs)], np.bool_)
        return pairs.only(is_needed | is_bridge)

    def _matched_again(self, groups: Sequence[Group]) -> set[int]:
        """Return the ids of the rows that must be matched again, with all other rows of their groups."""
        wholly = self._lost.of_group.keys() - self._partial.keys()
        again = {
            row.id
            for row in self._scope.canonical_rows()
            if row.group_id in wholly and row.id not in self._searched
        }
        return again.union(*(group.members for group in groups if not again.isdisjoint(group.members)))

    def _unfit(self, groups: Sequence[Group], again: Collection[int]) -> set[int]:
        """Return the partly loaded groups that must be loaded whole: because they get another representative,
        are matched again, or have no longer too many rows for all of their pairs."""
        matched = map(self._scope.rows.__getitem__, again)
        unfit: set[int | None] = {row.group_id for row in matched if self._part_of(row) is not None}
        seen: set[int | None] = set()
        for group in groups:
            rows = [self._scope.rows[i] for i in group.members]
            within: set[int | None] = {row.group_id for row in rows if self._part_of(row) is not None}
            if within and (within != {group.representative} or within & seen or self._is_small(group)):
                unfit |= within
            seen |= within
        return {group for group in unfit if group is not None}

    def _is_small(self, group: Group) -> bool:
        """Return whether a partly loaded group must no longer be abridged."""
        scope, lost = self._scope, self._lost.of_group.get(group.representative, frozenset())
        split_off = self._partial[group.representative].split_off
        joined = sum(self._part_of(scope.rows[i]) is None for i in group.members)
        if len(lost) + len(split_off) <= joined:
            return False
        stored = neighbours.count_canonical(scope.connection, scope.store, group.representative)
        loaded = sum(row.group_id == group.representative for row in scope.canonical_rows())
        return stored - loaded + len(group.members) <= scope.watched.abridge_above

    def _match_again(
        self, groups: Sequence[Group], known: StoredPairs, again: Collection[int]
    ) -> tuple[list[Group], StoredPairs]:
        """Match some rows from their texts, as a full scan would; return all groups and pairs."""
        scope = self._scope
        rows = sorted((scope.rows[i] for i in again), key=scope.received)
        scope.texts.read(scope.connection, rows)
        matched, pairs = match_rows(scope.watched, rows, scope.texts, scope.rejected_texts(rows))
        has_duplicates = neighbours.having_exact_duplicates(scope.connection, scope.store, sorted(again))
        grouped = {member for group in matched for member in group.members}
        alone = [Group(i, [i], False, False, []) for i in sorted(has_duplicates - grouped)]
        others = [group for group in groups if group.members[0] not in again]
        return [*others, *matched, *alone], concatenate_pairs([known.only(~having(known, again)), pairs])


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
