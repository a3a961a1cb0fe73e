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

from db_dedup.flow._compiled import inner, kernel, scalar
from db_dedup.flow.candidates._bits import (
    BITS_AT_ONCE,
    get_bits,
    get_loaded,
    get_rice,
    put_bits,
    put_unary,
    zeros_before_one,
)
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.kernels import RuleNumbers, least_shared
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import CHARACTERS, SECTIONS, Details
from db_dedup.flow.threads import in_threads, split_evenly

MOST_FEATURES: Final = 4_000
"""A row with more has no set: it would be large, and such a row is rare."""

_PAIRS_WORTH_THREADS: Final = 10_000
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
_MOST_WORDS: Final = (_PLACES_A_FEATURE << 14) // 64 + 1
"""For a bit for each place of a set, whose number of features has 14 bits."""
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
    threads: int = 1,
) -> NDArray[np.bool_]:
    """Return bool[p]: which candidate pairs may share as many features as the rule asks for.

    Args:
        asked: the rows whose candidates these are.
        which: int64[p], positions of the asked rows.
        rows: int64[p], positions of the candidates among the sets.
        sets: of the candidates; a pair with a candidate that has none, or one of other features than the
            measure compares, may be alike.
        threads: in which many pairs are compared.

    Raises:
        ValueError: a set is damaged.
    """
    rule = asked.rule
    if rule.measure < 0 or not np.any(sets.begins < sets.ends):
        return np.ones(which.size, np.bool_)
    of_grams = [*MEASURES.values()][rule.measure].features == "grams"
    may = np.ones(which.size, np.bool_)

    def compare(first: int, end: int) -> None:
        """Compare the pairs with a range of candidates, each of which is unpacked once."""
        chosen = np.flatnonzero((rows >= first) & (rows < end))
        may[chosen] = _may_be_alike(
            *(asked.starts, asked.hashes, which[chosen], rows[chosen] - first, sets.packed),
            *(sets.begins[first:end], sets.ends[first:end], rule.measure, rule.threshold, of_grams),
        )

    # Ranges with as many pairs each: the candidates may be close together among the rows.
    parts = threads if rows.size >= _PAIRS_WORTH_THREADS else 1
    middles = np.array(split_evenly(0, rows.size, parts)[1:-1], np.int64)
    bounds = [0, *np.partition(rows, middles)[middles].tolist(), sets.begins.size]
    for _ in in_threads(len(bounds) - 1, compare, bounds[:-1], bounds[1:]):
        pass
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
    """Compare the set of each candidate with all the rows that it is a candidate of.

    A set is unpacked once, and only as far as these comparisons need: the first places often rule a pair out.
    """
    may = np.ones(asked.size, np.bool_)
    order, ends = _by_row(rows, set_begins.size)
    bits, unpacked = np.zeros(_MOST_WORDS, np.uint64), np.empty(2, np.int64)
    for row in range(set_begins.size):
        begin, end = set_begins[row] * 8, set_ends[row] * 8
        first_pair = ends[row - 1] if row > 0 else np.int64(0)
        if begin == end or first_pair == ends[row]:
            continue
        head = np.int64(get_bits(packed, begin, end, _COUNT_BITS))
        if head & 1 != np.int64(of_grams):
            continue
        size = (head & ~_FINE) >> _KIND_BITS
        places, shift = size * _FORMER_PLACES_A_FEATURE, _FORMER_SHIFT
        if head & _FINE:
            places, shift = size * _PLACES_A_FEATURE, _SHIFT
        unpacked[0], unpacked[1] = begin + _COUNT_BITS, -1
        for i in range(first_pair, ends[row]):
            first, last = starts[asked[order[i]]], starts[asked[order[i]] + 1]
            least = least_shared(measure, threshold, last - first, size)
            may[order[i]] = _may_share(
                hashes, first, last, packed, end, shift, places, size, least, bits, unpacked
            )
        for word in range((min(unpacked[1], places) >> 6) + 1):
            bits[word] = np.uint64(0)
    return may


@inner
def _by_row(rows, count):
    """Return (int64[p] the pairs row by row, int64[count] where those of each row end)."""
    ends = np.zeros(count, np.int64)
    for row in rows:
        ends[row] += 1
    for row in range(1, count):
        ends[row] += ends[row - 1]
    order, free = np.empty(rows.size, np.int64), ends.copy()
    for pair in range(rows.size - 1, -1, -1):
        free[rows[pair]] -= 1
        order[free[rows[pair]]] = pair
    return order, ends


@scalar
def _unpack_word(packed, end, shift, places, word, bits, unpacked):
    """Set the bit of each place that a set has in a word, and in those before it.

    Args:
        packed: uint8[m], sets.
        end: where the codes of this one end, in bits.
        shift: of its codes.
        places: that there are.
        word: the places are those below 64 * (word + 1).
        bits: uint64[w], 0 for each place that is not unpacked.
        unpacked: int64[2]: where the codes begin that are left, and the last place whose bit is set. It is
            past all places when no code is left.

    Raises:
        ValueError: the set is damaged.
    """
    place, at = unpacked
    until = ((word + 1) << 6) - 1
    while at < until:
        if not _has_code(packed, place, end):
            at = max(places, until)
            break
        value, left = get_loaded(packed, place), min(BITS_AT_ONCE, end - place)
        zeros = zeros_before_one(value)
        if zeros + 1 + shift > left:
            gap, place = get_rice(packed, place, end, shift)
            at = _mark(at + 1 + gap, places, bits)
            continue
        # Several codes of one load: to load for each would take longer than all the rest.
        before = left
        while zeros + 1 + shift <= left:
            rest = (value >> np.uint64(zeros + 1)) & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
            at = _mark(at + 1 + ((zeros << shift) | np.int64(rest)), places, bits)
            value >>= np.uint64(zeros + 1 + shift)
            left -= zeros + 1 + shift
            zeros = zeros_before_one(value)
        place += before - left
    unpacked[0], unpacked[1] = place, at


@scalar
def _mark(at, places, bits):
    if at >= places:
        raise ValueError("a piece of the index ends early")
    bits[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
    return at


@scalar
def _has_code(packed, place, end):
    """Return whether another code follows: each has a 1, and after the last one there are at most seven 0."""
    return place + 7 < end or (place < end and get_bits(packed, place, end, end - place) != 0)


@scalar
def _may_share(hashes, first, last, packed, end, shift, places, size, least, bits, unpacked):
    """Return whether a row may share so many features with a set.

    A feature whose place the set does not have is none of the set's. A place of the set where the row has no
    feature is that of a feature that the row does not have.

    Args:
        hashes: uint64[m], features.
        first: of the row; they are ascending.
        last: the one after its last one.
        size: how many features the set has.
        least: how many must be shared.
        packed: as for `_unpack_word`, like `end`, `shift`, `places`, `bits` and `unpacked`.
    """
    spare, spare_of_set = last - first - least, size - least
    if spare < 0 or spare_of_set < 0:
        return False
    i = first
    for word in range((places >> 6) + 1):
        _unpack_word(packed, end, shift, places, word, bits, unpacked)
        mine = np.uint64(0)
        while i < last:
            place = _place_of(hashes[i], places)
            if place >> 6 != word:
                break
            bit = np.uint64(1) << np.uint64(place & 63)
            mine |= bit
            spare -= np.int64(bits[word] & bit == 0)
            i += 1
        spare_of_set -= popcount(bits[word] & ~mine)
        if spare < 0 or spare_of_set < 0:
            return False
    return True
