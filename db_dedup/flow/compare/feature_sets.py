"""The set of a row's features in a few bits each, which tells at most how many features two rows share.

It is a Golomb-coded set, a compressed Bloom filter with one hash (Putze, Sanders, Singler 2007): each of n
features has a place among 12n, by the upper half of its hash, and the differences of the ascending places are
in a Rice code. Two features may have the same place, so a shared place is not proof of a shared feature; a
place that the other row does not have is proof of a feature that it does not have. So the number of shared
features has an upper bound, and a candidate pair that cannot reach the threshold is ruled out without its
texts. It takes less than six bits a feature, and rules out nearly all pairs that share no more than a set
phrase. Former versions had 5n places, which the many features of a long text nearly fill; sets of these are
read, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import kernel, scalar
from db_dedup.flow.candidates._bits import (
    BITS_AT_ONCE,
    get_bits,
    get_loaded,
    get_rice,
    put_bits,
    put_unary,
    zeros_before_one,
)
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.kernels import RuleNumbers, least_shared
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import CHARACTERS, SECTIONS, Details

MOST_FEATURES: Final = 4_000
"""A row with more has no set: it would be large, and such a row is rare."""

_PLACES_A_FEATURE: Final = 12
_FORMER_PLACES_A_FEATURE: Final = 5
_COUNT_BITS: Final = np.int64(16)
"""From the lowest bit on: whether the features are 3-grams; 14 bits for their number; whether a feature has
12 places, and not 5."""
_KIND_BITS: Final = np.int64(1)
_FINE: Final = np.int64(1 << 15)
_SHIFT: Final = np.int64(3)
_FORMER_SHIFT: Final = np.int64(2)
SLACK_BYTES: Final = 16
"""How many bytes there must be behind the last set of an array, for the kernels that read it."""
_CELLS: Final = 1 << 16
_CELLS_A_FEATURE: Final = 64
"""A row's features are looked up by equal ranges of hashes: so many for each, a power of two in all, and at
most `_CELLS`. More would rule out hardly more sets, and take longer to count than one set to read."""
_WIDTH_BITS: Final = np.int64(48)
# A place is less than 12n, so all quotients of a set together are less than 12n / 8: one and a half bits a
# feature, and four for the end and the remainder of each.
_MOST_BYTES_A_FEATURE: Final = 1


@dataclass(frozen=True)
class AskedFeatures:
    """The features of n rows whose candidates are looked for, and the rule.

    Attributes:
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], ascending and distinct within a row.
        rule: by which candidates are confirmed.
    """

    starts: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    rule: RuleNumbers

    @classmethod
    def of(cls, features: Features, rows: NDArray[np.int64], rule: RuleNumbers) -> Self:
        """Return copies of the features of some rows."""
        taken = Sketches(features.starts, features.hashes).take(rows)
        return cls(taken.starts, taken.values, rule)


class PackedSets(NamedTuple):
    """The sets of r rows in one array of bytes.

    Attributes:
        packed: uint8[m], with `SLACK_BYTES` behind the last set.
        begins: int64[r], where the set of each row begins.
        ends: int64[r], where it ends; equal to the begin for a row that has none.
    """

    packed: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sequence[bytes | None]) -> Self:
        """Join the sets of some rows; None where a row has none."""
        given = [each or b"" for each in sets]
        starts = np.cumsum([0, *map(len, given)]).astype(np.int64)
        packed = np.frombuffer(b"".join([*given, bytes(SLACK_BYTES)]), np.uint8)
        return cls(packed, starts[:-1], starts[1:])


def feature_sets(
    features: Features, details: Details, counts: NDArray[np.int64], *, of_grams: bool
) -> list[bytes | None]:
    """Return the set of each of n rows; None for a row that has none.

    Two short rows are compared by their edits, for which the bound does not hold. So a short row has no set,
    nor has one without a sketch, which is no candidate by hashes, nor one with too many features.

    Args:
        features: of the n rows.
        details: of the n rows.
        counts: int64[n], how many hashes the sketch of each row has.
        of_grams: the features are 3-grams of characters, not words. The set tells, since a scan with another
            measure leaves the sets of unchanged rows as they are.
    """
    characters = np.diff(details.starts)[CHARACTERS::SECTIONS]
    sizes = features.counts
    has_set = (counts > 0) & (characters == 0) & (sizes > 0) & (sizes <= MOST_FEATURES)
    packed, ends = _pack_sets(features.starts, features.hashes, has_set, of_grams)
    content, begin = packed.tobytes(), 0
    found: list[bytes | None] = []
    for end in ends.tolist():
        found.append(content[begin:end] or None)
        begin = end
    return found


def may_be_alike(
    asked: AskedFeatures,
    which: NDArray[np.int64],
    rows: NDArray[np.int64],
    sets: PackedSets,
) -> NDArray[np.bool_]:
    """Return bool[p]: which candidate pairs may share as many features as the rule asks for.

    Args:
        asked: the rows whose candidates these are.
        which: int64[p], positions of the asked rows.
        rows: int64[p], positions of the candidates among the sets.
        sets: of the candidates; a pair with a candidate that has none, or one of other features than the
            measure compares, may be alike.

    Raises:
        ValueError: a set is damaged.
    """
    rule = asked.rule
    if rule.measure < 0 or not np.any(sets.begins < sets.ends):
        return np.ones(which.size, np.bool_)
    of_grams = [*MEASURES.values()][rule.measure].features == "grams"
    may: NDArray[np.bool_] = _may_be_alike(
        *(asked.starts, asked.hashes, which, rows),
        *(sets.packed, sets.begins, sets.ends, rule.measure, rule.threshold, of_grams),
    )
    return may


@scalar
def _place_of(hashed, places):
    """Return the place of a feature: features with ascending hashes have ascending places."""
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(places)) >> np.uint64(32))


@kernel
def _pack_sets(starts, hashes, has_set, of_grams):
    """Return (uint8[m] all sets, int64[n] where each ends)."""
    rows = has_set.size
    packed = np.zeros(hashes.size * _MOST_BYTES_A_FEATURE + 4 * rows + 16, np.uint8)
    ends = np.empty(rows, np.int64)
    used = np.int64(0)
    for row in range(rows):
        if has_set[row]:
            size = starts[row + 1] - starts[row]
            head = np.uint64(_FINE | (size << _KIND_BITS) | np.int64(of_grams))
            place = put_bits(packed, used * 8, head, _COUNT_BITS)
            before = np.int64(-1)
            for i in range(starts[row], starts[row + 1]):
                gap = _place_of(hashes[i], size * _PLACES_A_FEATURE) - before - 1
                if gap >= 0:
                    place = put_unary(packed, place, gap >> _SHIFT)
                    place = put_bits(packed, place, np.uint64(gap), _SHIFT)
                    before += gap + 1
            used = (place + 7) // 8
        ends[row] = used
    return packed[:used].copy(), ends


@kernel
def _may_be_alike(starts, hashes, asked, rows, packed, set_begins, set_ends, measure, threshold, of_grams):
    may = np.ones(asked.size, np.bool_)
    before, below, bits = np.int64(-1), np.zeros(_CELLS + 1, np.int32), np.int64(0)
    for p in range(asked.size):
        begin, end = set_begins[rows[p]] * 8, set_ends[rows[p]] * 8
        if begin == end:
            continue
        first, last = starts[asked[p]], starts[asked[p] + 1]
        head = np.int64(get_bits(packed, begin, end, _COUNT_BITS))
        if head & 1 != np.int64(of_grams):
            continue
        size = (head & ~_FINE) >> _KIND_BITS
        places, shift = size * _FORMER_PLACES_A_FEATURE, _FORMER_SHIFT
        if head & _FINE:
            places, shift = size * _PLACES_A_FEATURE, _SHIFT
        least = least_shared(measure, threshold, last - first, size)
        at = begin + _COUNT_BITS
        if last - first < least:
            may[p] = False
        elif first < last < first + size:
            may[p] = _may_share_of_few(hashes[first:last], packed, at, end, places, shift, least)
        else:
            if asked[p] != before:
                before = asked[p]
                bits = _count_below(hashes[first:last], below)
            may[p] = _may_share(below, bits, packed, at, end, size, places, shift, least)
    return may


@scalar
def _may_share_of_few(hashes, packed, place, end, places, shift, least):
    """Return whether a row may share so many features with a set of more features than it has.

    A feature whose place the set does not have is none of the set's. A few of these are enough to tell, long
    before the end of the set.
    """
    spare, i, at = hashes.size - least, np.int64(0), np.int64(-1)
    mine = _place_of(hashes[0], places)
    value, left = np.uint64(0), np.int64(0)
    while True:
        zeros = zeros_before_one(value)
        if zeros + 1 + shift <= left:
            rest = (value >> np.uint64(zeros + 1)) & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
            at += 1 + ((zeros << shift) | np.int64(rest))
            value >>= np.uint64(zeros + 1 + shift)
            left -= zeros + 1 + shift
            place += zeros + 1 + shift
        elif not _has_code(packed, place, end):
            return spare >= hashes.size - i
        elif place + BITS_AT_ONCE <= end and left < BITS_AT_ONCE:
            # Several codes of one load: to load for each would take longer than all the rest.
            value, left = get_loaded(packed, place), BITS_AT_ONCE
            continue
        else:
            gap, place = get_rice(packed, place, end, shift)
            at += 1 + gap
            left = np.int64(0)
        while mine <= at:
            spare -= mine < at
            i += 1
            if spare < 0 or i == hashes.size:
                return spare >= 0
            mine = _place_of(hashes[i], places)


@scalar
def _count_below(hashes, below):
    """Set for each cell, and for the end, how many features are below; return the bits of a cell's number."""
    bits = np.int64(1)
    while (1 << bits) < min(hashes.size * _CELLS_A_FEATURE, _CELLS):
        bits += 1
    i = 0
    for cell in range(1 << bits):
        below[cell] = i
        while i < hashes.size and np.int64(hashes[i] >> np.uint64(64 - bits)) == cell:
            i += 1
    below[1 << bits] = i
    return bits


@scalar
def _has_code(packed, place, end):
    """Return whether another code follows: each has a 1, and after the last one there are at most seven 0."""
    return place + 7 < end or get_bits(packed, place, end, end - place) != 0


@scalar
def _may_share(below, bits, packed, place, end, size, places, shift, least):
    """Return whether a row may share so many features with a set.

    A feature of the set is none of the row's if no feature of the row is in the cells that the range of
    hashes of its place touches. So the features that are left are at least those that both have.

    Args:
        below: int32[_CELLS + 1], how many of the row's features are below each cell.
        bits: of a cell's number.
        packed: uint8[m], sets.
        place: where the codes of this one begin, in bits.
        end: where they end.
        size: how many features it has.
        places: among so many places.
        shift: of its codes.
        least: how many must be shared.
    """
    width = (np.int64(1) << _WIDTH_BITS) // max(np.int64(1), places)
    most, at = size, np.int64(-1)
    while most >= least and _has_code(packed, place, end):
        if place + BITS_AT_ONCE > end:
            gap, place = get_rice(packed, place, end, shift)
            at += 1 + gap
            most -= _is_free(below, bits, at, width)
            continue
        # Several codes of one load: to load for each would take longer than all the rest.
        value, left = get_loaded(packed, place), BITS_AT_ONCE
        zeros = zeros_before_one(value)
        while zeros + 1 + shift <= left:
            rest = (value >> np.uint64(zeros + 1)) & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
            at += 1 + ((zeros << shift) | np.int64(rest))
            most -= _is_free(below, bits, at, width)
            value >>= np.uint64(zeros + 1 + shift)
            left -= zeros + 1 + shift
            zeros = zeros_before_one(value)
        if left == BITS_AT_ONCE:
            gap, place = get_rice(packed, place, end, shift)
            at += 1 + gap
            most -= _is_free(below, bits, at, width)
        place += BITS_AT_ONCE - left
    return most >= least


@scalar
def _is_free(below, bits, at, width):
    """Return whether no feature of the row is in the cells that a place touches."""
    to_cell, cells = _WIDTH_BITS - bits, np.int64(1) << bits
    first = min((at * width) >> to_cell, cells)
    after = min(((at + 1) * (width + 1)) >> to_cell, cells - 1) + 1
    return below[after] == below[first]
