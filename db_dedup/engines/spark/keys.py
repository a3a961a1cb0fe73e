"""The keys by which rows are shuffled to find candidate pairs, and the pairs among rows with equal keys.

Two rows that a candidate generator pairs have a key in common. Keys of sketches are the hashes themselves.
Keys of fingerprints are parts of them: k + 1 parts of about equal length, so that two fingerprints within k
bits agree in at least one. The `within` columns are a part of each key.

The rows of one key are a run. All pairs of a short run are compared. A key that very many rows have is hot:
its rows are not paired here but sent to a task that joins them as the embedded engine does. The hot keys of
a partition share a task while these have not too many rows together. A run that is too long for one task is
cut into blocks of rows, of which every two meet in a task of their own: its cost grows with its square.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from db_dedup.engines.spark.columns import numbers_of
from db_dedup.flow.candidates.blocks import candidate_pairs
from db_dedup.flow.candidates.sketches import least_in_common

KEY: Final = "kind byte, key long, number int, fingerprint long, size short"
FOUND: Final = "kind byte, a int, b int, odd int, least int"
"""Pairs of rows (`NEAR`, `ODD`), and the rows of hot keys (`HOT`, `b` is the task)."""

NEAR: Final = 0
"""A key of a part of a fingerprint; a pair that is a candidate pair."""
EVEN: Final = 1
"""A key of a hash of which one in common is enough."""
ODD: Final = 2
"""A key of a hash of which several must be common; a pair that shares `odd` of these."""
HOT: Final = 3

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_ENOUGH: Final = np.iinfo(np.int32).max
_PAIRS_A_ROW: Final = 50


class KeyLimits(NamedTuple):
    """When a key is hot.

    Attributes:
        radius: of the rule, bits.
        longest_run: the most rows with one hash of which all pairs are compared.
        longest_bucket: the same for one part of a fingerprint, where comparing is cheaper.
        rows_a_task: the most rows of one hot key in a task.
        rows_of_keys: about the most rows of several hot keys in a task.
    """

    radius: int
    longest_run: int
    longest_bucket: int
    rows_a_task: int
    rows_of_keys: int


def part_masks(radius: int) -> list[int]:
    """Return the bits of the parts of a fingerprint: radius + 1 masks that have no bit in common."""
    edges = [64 * i // (radius + 1) for i in range(radius + 2)]
    return [(1 << high) - (1 << low) for low, high in pairwise(edges)]


def row_keys(radius: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the keys of rows: of their fingerprints, and of their sketches if they have any."""
    for batch in batches:
        numbers = np.array(batch.column("number").to_numpy(), np.int32)
        salts = np.array(batch.column("within").to_numpy(), np.int64).astype(np.uint64) * _SPREAD
        fingerprints = np.array(batch.column("fingerprint").to_numpy(), np.int64).view(np.uint64)
        starts, values = numbers_of(pa.chunked_array([batch.column("sketch")]), np.uint64)
        sizes = np.diff(starts)
        for place, mask in enumerate(part_masks(radius)):
            part = (fingerprints & np.uint64(mask)) + salts
            # In some other way for each part, so that equal values of two parts are two keys.
            key = (part ^ np.uint64(place)) * _SPREAD
            yield _keys(np.full(numbers.size, NEAR, np.int8), key, numbers, fingerprints, sizes)
        owners = np.repeat(np.arange(numbers.size), sizes)
        kinds = np.where(values & np.uint64(1), ODD, EVEN).astype(np.int8)
        yield _keys(kinds, values + salts[owners], numbers[owners], fingerprints[owners], sizes[owners])


def _keys(
    kinds: NDArray[np.int8],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    fingerprints: NDArray[np.uint64],
    sizes: NDArray[np.int64],
) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "kind": kinds,
            "key": keys.view(np.int64),
            "number": numbers,
            "fingerprint": fingerprints.view(np.int64),
            "size": sizes.astype(np.int16),
        }
    )


class _Entries(NamedTuple):
    """Keys of one kind, sorted: key, number, fingerprint and sketch size of each."""

    keys: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    fingerprints: NDArray[np.uint64]
    sizes: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> "_Entries":
        return _Entries(
            self.keys[places], self.numbers[places], self.fingerprints[places], self.sizes[places]
        )


class _Found(NamedTuple):
    """Some pairs, or some rows of hot keys, as `FOUND` has them."""

    kind: int
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    odd: NDArray[np.int32]
    least: NDArray[np.int32]

    def batch(self) -> pa.RecordBatch:
        """Return them as Arrow has them."""
        columns = dict(zip(self._fields[1:], self[1:], strict=True))
        return pa.RecordBatch.from_pydict({"kind": np.full(self.a.size, self.kind, np.int8), **columns})


class _HotKey(NamedTuple):
    """The rows of a hot key.

    Attributes:
        number: of the key, 0 to 2**31 - 1; two keys may have the same.
        rows: int32[r] their numbers.
    """

    number: int
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, entries: _Entries, first: int, end: int) -> "_HotKey":
        mixed = (entries.keys[first : first + 1] * _SPREAD)[0]  # numpy warns of single numbers
        return cls(int(mixed) >> 33, entries.numbers[first:end])


def pairs_of_keys(limits: KeyLimits, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of rows with equal keys, and the rows of hot keys; equal keys are in one partition."""
    all_batches = list(batches)
    if not all_batches:
        return
    table = pa.Table.from_batches(all_batches)
    kinds = table.column("kind").to_numpy()
    whole = _Entries(
        np.array(table.column("key").to_numpy(), np.int64).view(np.uint64),
        np.array(table.column("number").to_numpy(), np.int32),
        np.array(table.column("fingerprint").to_numpy(), np.int64).view(np.uint64),
        np.array(table.column("size").to_numpy(), np.int64),
    )
    hot: list[_HotKey] = []
    for kind in (NEAR, EVEN, ODD):
        entries = whole.take(np.flatnonzero(kinds == kind))
        entries = entries.take(np.lexsort((entries.numbers, entries.keys)))
        if not entries.keys.size:
            continue
        firsts = np.flatnonzero(np.append(True, entries.keys[1:] != entries.keys[:-1]))
        ends = np.append(firsts[1:], entries.keys.size)
        if kind == NEAR:
            found = _near(limits, entries, firsts, ends, hot)
        else:
            found = _sharing(limits, entries, firsts, ends, kind, hot)
        if found.a.size:
            yield found.batch()
    yield from (found.batch() for found in _tasks_of_hot_keys(limits, hot))


def _near(
    limits: KeyLimits,
    entries: _Entries,
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    hot: list[_HotKey],
) -> _Found:
    """Return the pairs within the radius of rows that agree in a part of their fingerprints; add hot keys."""
    is_long = ends - firsts > limits.longest_bucket
    packed = []
    for left, right in _all_pairs(firsts[~is_long], ends[~is_long]):
        distances = np.bitwise_count(entries.fingerprints[left] ^ entries.fingerprints[right])
        is_near = distances <= limits.radius
        packed.append(_packed(entries.numbers[left[is_near]], entries.numbers[right[is_near]]))
    for first, end in zip(firsts[is_long].tolist(), ends[is_long].tolist(), strict=True):
        own = slice(first, end)
        pairs, is_hot = _within_radius(limits, entries.fingerprints[own], entries.numbers[own])
        if is_hot:
            hot.append(_HotKey.of(entries, first, end))
        else:
            packed.append(pairs)
    return _certain(packed)


def _within_radius(
    limits: KeyLimits, fingerprints: NDArray[np.uint64], numbers: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], bool]:
    """Return (packed pairs within the radius, whether there are so many that the key is hot)."""
    found, count = [np.empty(0, np.uint64)], 0
    for left, right in candidate_pairs(fingerprints, limits.radius):
        found.append(_packed(numbers[left], numbers[right]))
        count += left.size
        if count > _PAIRS_A_ROW * fingerprints.size:
            return found[0], True
    return np.concatenate(found), False


def _sharing(
    limits: KeyLimits,
    entries: _Entries,
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    kind: int,
    hot: list[_HotKey],
) -> _Found:
    """Return the pairs of rows that share a hash, and how many odd ones each shares here; add hot keys."""
    is_long = ends - firsts > limits.longest_run
    packed, least = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for left, right in _all_pairs(firsts[~is_long], ends[~is_long]):
        packed.append(_packed(entries.numbers[left], entries.numbers[right]))
        least.append(least_in_common(np.minimum(entries.sizes[left], entries.sizes[right])))
    for first, end in zip(firsts[is_long].tolist(), ends[is_long].tolist(), strict=True):
        hot.append(_HotKey.of(entries, first, end))
    if kind == EVEN:
        return _certain(packed)
    pairs, places, counts = np.unique(np.concatenate(packed), return_index=True, return_counts=True)
    a, b = _unpacked(pairs)
    return _Found(ODD, a, b, counts.astype(np.int32), np.concatenate(least)[places].astype(np.int32))


def _all_pairs(
    firsts: NDArray[np.int64], ends: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield (left, right): the positions of every two rows of each run, by the distance of the positions."""
    sizes = ends - firsts
    end_of = np.repeat(ends, sizes)
    starts = np.cumsum(sizes) - sizes
    left = np.arange(end_of.size) + np.repeat(firsts - starts, sizes)
    distance = 1
    while left.size:
        has_partner = left + distance < end_of
        left, end_of = left[has_partner], end_of[has_partner]
        if left.size:
            yield left, left + distance
        distance += 1


def _tasks_of_hot_keys(limits: KeyLimits, hot: list[_HotKey]) -> Iterator[_Found]:
    """Yield the rows of the hot keys of a partition, each row with the tasks that it is sent to."""
    yield from (_in_blocks(limits, key) for key in hot if key.rows.size > limits.rows_a_task)
    shared = [key for key in hot if key.rows.size <= limits.rows_a_task]
    if not shared:
        return
    rows = np.concatenate([key.rows for key in shared])
    ends = np.cumsum([key.rows.size for key in shared])
    # In one task a row counts once, however many of the keys it has: then one task may be enough for all.
    is_enough = np.unique(rows).size <= limits.rows_of_keys
    task_of_key = np.zeros(len(shared), np.int64) if is_enough else (ends - 1) // limits.rows_of_keys
    # A task is named after its first key, so that those of different partitions differ.
    firsts = np.searchsorted(task_of_key, task_of_key)
    names = np.array([key.number for key in shared])[firsts]
    yield _of_hot_keys(rows, np.repeat(names, np.diff(ends, prepend=0)))


def _in_blocks(limits: KeyLimits, key: _HotKey) -> _Found:
    """Return the rows of a hot key that has too many for one task."""
    count = key.rows.size
    blocks = -(-2 * count // limits.rows_a_task)
    of_row = np.arange(count) * blocks // count
    rows, tasks_of = [], []
    for other in range(blocks):
        low, high = np.minimum(of_row, other), np.maximum(of_row, other)
        rows.append(key.rows)
        # Other keys may be sent to this task: it has more rows then, and finds no other pairs.
        tasks_of.append((key.number + low * blocks + high) % _ENOUGH)
    return _of_hot_keys(np.concatenate(rows), np.concatenate(tasks_of))


def _of_hot_keys(rows: NDArray[np.int32], tasks: NDArray[np.int64]) -> _Found:
    zeros = np.zeros(rows.size, np.int32)
    return _Found(HOT, rows, tasks.astype(np.int32), zeros, zeros)


def _certain(packed: list[NDArray[np.uint64]]) -> _Found:
    """Return pairs that are candidates for certain, each once."""
    a, b = _unpacked(np.unique(np.concatenate([np.empty(0, np.uint64), *packed])))
    return _Found(NEAR, a, b, np.zeros(a.size, np.int32), np.full(a.size, _ENOUGH, np.int32))


def _packed(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.uint64]:
    low, high = np.minimum(one, other).astype(np.uint64), np.maximum(one, other).astype(np.uint64)
    return (low << np.uint64(32)) | high


def _unpacked(pairs: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return (pairs >> np.uint64(32)).astype(np.int32), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32)
