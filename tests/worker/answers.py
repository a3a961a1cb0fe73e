"""An answer in a form in which the stored one and a fresh scan's can be compared."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.records.kinds import PairKind

Answer = dict[str, Any]


def scanned_answer(scanned: ScannedTable) -> Answer:
    """What a scan found."""
    keys, found = scanned.row_keys, scanned.matches
    group_of = found.group_of.tolist()
    sizes = np.bincount([g for g in group_of if g != NO_ROW], minlength=len(keys) + 1).tolist()
    copies = ("copy", None, False)
    links = [(keys[h], keys[c], 0, 1.0, *copies) for c, h in enumerate(found.copy_of.tolist()) if h != NO_ROW]
    of_pairs = found.pairs
    columns = (of_pairs.left, of_pairs.right, of_pairs.distances, of_pairs.similarities, of_pairs.kinds)
    pairs = [
        (keys[a], keys[b], d, None if np.isnan(s) else s, *_shown(k, keys[a], keys[b]))
        for a, b, d, s, k in zip(*(c.tolist() for c in columns), strict=True)
    ]
    first = [i for i, group in enumerate(group_of) if group == i]
    groups = [
        (keys[i], sizes[i], keys[i], bool(found.is_loose[i]), bool(found.is_abridged[i])) for i in first
    ]
    grouped = [(i, g) for i, g in enumerate(group_of) if g != NO_ROW]
    members = [(keys[g], keys[i], i == g) for i, g in grouped]
    rows = [(keys[g], sizes[g], i == g, keys[i]) for i, g in grouped]
    return compared_answer(pairs, links, groups, members, rows)


def _shown(packed: int, key_a: str, key_b: str) -> tuple[Any, ...]:
    kind = PairKind.of(packed)
    return kind.kind, kind.part_of(key_a, key_b), kind.other_place


def compared_answer(
    pairs: list[tuple[Any, ...]],
    links: list[tuple[Any, ...]],
    groups: list[tuple[Any, ...]],
    members: list[tuple[Any, ...]],
    rows: list[tuple[Any, ...]],
) -> Answer:
    """Of an abridged group not which pairs are stored, but how many, and how many groups they make."""
    abridged = {group[0] for group in groups if group[4]}
    group_of = {member: group for group, member, _ in members}
    kept = list(links)
    connecting: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for pair in pairs:
        group = group_of.get(pair[0])
        (connecting[group] if group in abridged else kept).append(pair)
    return {
        "pairs": sorted(kept, key=repr),
        "groups": sorted(groups),
        "members": sorted(members),
        "rows": sorted(rows),
        "connected": sorted((group, _components(found)) for group, found in connecting.items()),
    }


def _components(pairs: list[tuple[Any, ...]]) -> tuple[int, int, int]:
    """(pairs, rows, components) of some pairs."""
    root = {key: key for pair in pairs for key in pair[:2]}
    for a, b, *_ in pairs:
        before, after = root[a], root[b]
        root = {key: after if r == before else r for key, r in root.items()}
    return len(pairs), len(root), len(set(root.values()))
