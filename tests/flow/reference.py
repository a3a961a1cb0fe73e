"""The slow and obvious way, to compare with."""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import Details, join_sections
from db_dedup.records.kinds import CONTAINED, COPY, EDITED, OTHER_PLACE, PARTIAL, SECOND_IS_PART

Weights = Mapping[int, int]
"""The features of one row: hash -> weight."""


def features_of(rows: Sequence[Weights]) -> Features:
    """Return the rows as the flow holds them."""
    ordered = [sorted(row.items()) for row in rows]
    return Features(
        np.cumsum([0, *map(len, ordered)], dtype=np.int64),
        np.array([value for row in ordered for value, _ in row], np.uint64),
        np.array([weight for row in ordered for _, weight in row], np.int64),
    )


def empty_details(row_count: int) -> Details:
    """Return details of which every section is empty."""
    return join_sections(row_count, {})


def sketches_of(stored: Sequence[bytes]) -> Sketches:
    """Return the sketches that `Sketches.bytes_of` turned into bytes."""
    starts = np.cumsum([0, *(len(sketch) // 8 for sketch in stored)]).astype(np.int64)
    return Sketches(starts, np.frombuffer(b"".join(stored), np.uint64))


def similarity(measure: str, a: Weights, b: Weights) -> float:
    if not a or not b:
        return 0.0
    shared = a.keys() & b.keys()
    if measure in ("word_jaccard", "char_jaccard"):
        return len(shared) / len(a.keys() | b.keys())
    if measure == "char_overlap":
        smaller = min(len(a), len(b))
        is_contained = smaller >= 30 and len(shared) / smaller >= 0.8
        is_part = 6 <= smaller < 30 and len(shared) / smaller >= 0.95
        least = 0.41 if is_part else 0.5 if smaller < 30 else 0.43 if smaller < 60 else 0.3
        if len(shared) / len(a.keys() | b.keys()) < least and not is_contained:
            return 0.0
    if measure in ("overlap", "char_overlap"):
        return len(shared) / min(len(a), len(b))
    lengths = [sum(weight * weight for weight in row.values()) for row in (a, b)]
    return sum(a[key] * b[key] for key in shared) / math.sqrt(lengths[0] * lengths[1])


def long_similarity(a: Collection[int], b: Collection[int]) -> float:
    """The similarity by long grams; 1 where they do not count."""
    smaller, larger = sorted((len(a), len(b)))
    if smaller == 0 or (smaller < 100 and larger < 300):
        return 1.0
    shared, every = len(set(a) & set(b)), len(set(a) | set(b))
    share = shared / smaller
    contained = 0.8 if smaller < 100 else 0.7
    return 0.0 if shared / every < 0.2 and share < contained else float(share**0.6)


def kind(
    a: Collection[int], b: Collection[int], *, are_short: bool = False, names_other_place: bool = False
) -> int:
    """The packed kind of two rows by their features, a first."""
    shared, flag = len(set(a) & set(b)), OTHER_PLACE * names_other_place
    smaller, larger = sorted((len(a), len(b)))
    if shared >= 0.95 * len(set(a) | set(b)) and not names_other_place:
        return COPY
    if shared >= 0.8 * smaller and smaller <= 0.75 * larger:
        return CONTAINED | flag | (SECOND_IS_PART if len(b) < len(a) else 0)
    return flag | (EDITED if are_short or shared >= 0.6 * larger else PARTIAL)


def names_other_place(a: Collection[int], b: Collection[int]) -> bool:
    """Whether each of two rows names a place of one sort that the other does not, by their packed names."""

    def by_sort(names: Collection[int]) -> dict[int, list[frozenset[int]]]:
        found: dict[int, list[frozenset[int]]] = {}
        for name in names:
            sort, packed = divmod(name, 1 << 43)
            points = [packed] if packed >> 42 else [packed >> 21, packed % (1 << 21)]
            found.setdefault(sort, []).append(frozenset(points))
        return found

    one, other = by_sort(a), by_sort(b)
    return any(
        any(not any(x & y for y in other[sort]) for x in one[sort])
        and any(not any(x & y for x in one[sort]) for y in other[sort])
        for sort in one.keys() & other.keys()
    )


def edit_distance(a: Sequence[object], b: Sequence[object]) -> int:
    before = list(range(len(b) + 1))
    for i, one in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (one != other)))
        before = row
    return before[-1]


def edit_similarity(a: Sequence[object], b: Sequence[object]) -> float:
    edits = edit_distance(a, b)
    return 1 - edits / max(len(a), len(b)) if edits <= 4 else 0.0


_NUMERALS = {
    *(point for point in range(0xFF00) if chr(point).isdecimal()),
    *map(ord, "〇零一二两三四五六七八九十百千万亿"),
}
_DIGITS = str.maketrans("〇零一二两三四五六七八九", "001223456789")


def number_of(text: str) -> int:
    """The value of a number in digits or Chinese numerals."""
    for unit, worth in (("亿", 10**8), ("万", 10**4), ("千", 1000), ("百", 100), ("十", 10)):
        before, is_there, after = text.partition(unit)
        if is_there:
            return (number_of(before) or 1) * worth + number_of(after)
    return int(text.translate(_DIGITS) or "0")


def other_numbers(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether each of two short texts has a number in place of which the other only has others."""

    def by_place(symbols: Sequence[int]) -> dict[tuple[object, object], set[int]]:
        runs = [tuple(run) for _, run in groupby(symbols, _NUMERALS.__contains__)]
        ends = [(None,), *runs, (None,)]
        found: dict[tuple[object, object], set[int]] = {}
        for before, run, after in zip(ends, runs, ends[2:], strict=False):
            if run[0] in _NUMERALS:
                found.setdefault((before[-1], after[0]), set()).add(number_of("".join(map(chr, run))))
        return found

    one, other = by_place(a), by_place(b)
    common = one.keys() & other.keys()
    return any(one[place] - other[place] for place in common) and any(
        other[place] - one[place] for place in common
    )


def meet(a: Collection[int], b: Collection[int]) -> bool:
    """Whether two sketches meet: a band in common, or one in twelve of the passages of the smaller one."""
    common = set(a) & set(b)
    passages = sum(value % 2 for value in common)
    least = max(1, math.ceil((min(len(a), len(b)) - 24) / 12))
    return passages < len(common) or passages >= least


def simhash(row: Weights) -> int:
    votes = [sum(w if value >> bit & 1 else -w for value, w in row.items()) for bit in range(64)]
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


def near_pairs(fingerprints: NDArray[np.uint64], radius: int) -> dict[tuple[int, int], int]:
    """Return (left, right) -> distance of every pair of rows within the radius, left < right."""
    distances = np.bitwise_count(fingerprints[:, None] ^ fingerprints[None, :])
    left, right = np.nonzero(np.triu(distances <= radius, 1))
    found = zip(left.tolist(), right.tolist(), distances[left, right].tolist(), strict=True)
    return {(a, b): distance for a, b, distance in found}
