"""Shuffled keys find every candidate pair, hot keys or not. Spark itself, which moves rows, is not needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from db_dedup.engines.spark import keys
from db_dedup.engines.spark.columns import ragged
from db_dedup.engines.spark.keys import HOT, NEAR, KeyLimits
from db_dedup.flow.candidates.sketches import Sketches, shares_enough

LIMITS = KeyLimits(radius=3, longest_run=200, longest_bucket=2000, rows_a_task=20_000, rows_of_keys=9**9)
SMALL = KeyLimits(radius=3, longest_run=4, longest_bucket=3, rows_a_task=12, rows_of_keys=30)
Pair = tuple[int, int]


def made(count: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Sketches]:
    """Fingerprints near some centres, `within` numbers, and sketches with hashes that many rows share."""
    draw = np.random.default_rng(seed)
    centres = draw.integers(0, 2**64, max(1, count // 10), np.uint64)
    fingerprints = centres[draw.integers(0, centres.size, count)]
    for _ in range(3):
        fingerprints = fingerprints ^ (np.uint64(1) << draw.integers(0, 64, count).astype(np.uint64))
    own = [draw.integers(0, 2**63, 30, np.uint64) for _ in range(max(1, count // 6))]
    phrase = draw.integers(0, 2**63, 4, np.uint64) | np.uint64(1)
    values = []
    for _ in range(count):
        chosen = own[draw.integers(0, len(own))][draw.random(30) < draw.random()]
        values.append(np.unique(np.concatenate([chosen, phrase[draw.random(4) < 0.5]])))
    starts = np.cumsum([0, *(each.size for each in values)]).astype(np.int64)
    within = draw.integers(0, 2, count).astype(np.int32)
    return fingerprints, within, Sketches(starts, np.concatenate(values))


def candidates(limits: KeyLimits, rows: tuple[Any, Any, Sketches], partitions: int) -> set[Pair]:
    """The pairs that the steps of a scan compare: those of the keys, and all in the tasks of hot keys."""
    fingerprints, within, sketches = rows
    batch = pa.RecordBatch.from_pydict(
        {
            "number": np.arange(within.size, dtype=np.int32),
            "within": within,
            "fingerprint": fingerprints.view(np.int64),
            "sketch": ragged(sketches.starts, sketches.values),
        }
    )
    keyed = pa.Table.from_batches(list(keys.row_keys(limits.radius, [batch])))
    place = np.array(keyed.column("key").to_numpy(), np.int64) % partitions
    odd: dict[Pair, list[Pair]] = defaultdict(list)
    found: set[Pair] = set()
    hot = defaultdict(set)
    for partition in range(partitions):
        some = keyed.filter(pa.array(place == partition)).combine_chunks().to_batches()
        for part in keys.pairs_of_keys(limits, some):
            for kind, a, b, count, least in zip(*map(list_of, part.columns), strict=True):
                if kind == HOT:
                    hot[b].add(a)
                elif kind == NEAR:
                    found.add((a, b))
                else:
                    odd[a, b].append((count, least))
    for pair, counted in odd.items():
        shared, least = zip(*counted, strict=True)
        if sum(shared) >= min(least):
            found.add(pair)
    for task in hot.values():
        found |= set(combinations(sorted(task), 2))
    return found


def list_of(column: pa.Array) -> Sequence[Any]:
    values: Sequence[Any] = column.to_pylist()
    return values


def expected(radius: int, rows: tuple[Any, Any, Sketches]) -> set[Pair]:
    fingerprints, within, sketches = rows
    return {
        (a, b)
        for a, b in combinations(range(within.size), 2)
        if within[a] == within[b]
        and (
            (int(fingerprints[a]) ^ int(fingerprints[b])).bit_count() <= radius
            or shares_enough(sketches, a, b)
        )
    }


@pytest.mark.parametrize("radius", [0, 3, 7, 11])
def test_every_candidate_pair_is_found(radius: int) -> None:
    rows = made(160, radius)
    limits = LIMITS._replace(radius=radius)
    assert candidates(limits, rows, 3) == expected(radius, rows)


@pytest.mark.parametrize("radius", [0, 3, 7])
def test_no_pair_of_hot_keys_is_lost(radius: int) -> None:
    rows = made(160, 20 + radius)
    wanted = expected(radius, rows)
    found = candidates(SMALL._replace(radius=radius), rows, 3)
    assert len(wanted) > 100
    assert wanted <= found


def test_a_hot_key_of_many_rows_is_cut() -> None:
    rows = made(400, 5)
    fingerprints, within, sketches = np.zeros(400, np.uint64), np.zeros(400, np.int32), rows[2]
    limits = SMALL._replace(rows_a_task=50)
    assert candidates(limits, (fingerprints, within, sketches), 1) >= set(combinations(range(400), 2))


@pytest.mark.parametrize("most", [20, 50, 400])
def test_hot_keys_share_a_task_while_it_has_not_too_many_rows(most: int) -> None:
    """Forty keys, each of ten of the 400 rows."""
    numbers = np.arange(400, dtype=np.int32)
    batch = pa.RecordBatch.from_pydict(
        {
            "kind": np.full(400, keys.EVEN, np.int8),
            "key": numbers.astype(np.int64) // 10,
            "number": numbers,
            "fingerprint": np.zeros(400, np.int64),
            "size": np.ones(400, np.int16),
        }
    )
    found = pa.Table.from_batches(keys.pairs_of_keys(SMALL._replace(rows_of_keys=most), [batch]))
    assert set(found.column("kind").to_pylist()) == {HOT}
    tasks, counts = np.unique(found.column("b").to_numpy(), return_counts=True)
    assert counts.sum() == 400
    assert counts.max() <= most
    assert tasks.size == 400 // most


def test_a_task_takes_hot_keys_of_the_same_rows_together() -> None:
    """A row is sent to a task once, so forty keys of the same ten rows have ten rows."""
    batch = pa.RecordBatch.from_pydict(
        {
            "kind": np.full(400, keys.EVEN, np.int8),
            "key": np.repeat(np.arange(40), 10),
            "number": np.tile(np.arange(10, dtype=np.int32), 40),
            "fingerprint": np.zeros(400, np.int64),
            "size": np.ones(400, np.int16),
        }
    )
    found = pa.Table.from_batches(keys.pairs_of_keys(SMALL._replace(rows_of_keys=10), [batch]))
    assert len(set(found.column("b").to_pylist())) == 1


def test_parts_of_a_fingerprint_cover_it() -> None:
    for radius in range(12):
        masks = keys.part_masks(radius)
        assert len(masks) == radius + 1
        assert sum(masks) == (1 << 64) - 1


@pytest.mark.parametrize("limits", [LIMITS, SMALL])
@pytest.mark.parametrize("radius", [0, 3, 7, 11])
def test_fingerprints_that_agree_in_one_part_alone(radius: int, limits: KeyLimits) -> None:
    """Each differs from the first in one bit of every part but one, so only the key of that part finds it."""
    masks = keys.part_masks(radius)
    first = 0xFEDC_BA98_7654_3210
    others = [first ^ sum(mask & -mask for mask in masks if mask != left_out) for left_out in masks]
    fingerprints = np.array([first, *others], np.uint64)
    count = fingerprints.size
    no_sketches = Sketches(np.zeros(count + 1, np.int64), np.empty(0, np.uint64))
    found = candidates(
        limits._replace(radius=radius), (fingerprints, np.zeros(count, np.int32), no_sketches), 2
    )
    assert {(0, number) for number in range(1, count)} <= found
