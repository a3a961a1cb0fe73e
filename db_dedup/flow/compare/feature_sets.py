"""The set of a row's features in a few bits each, which tells at most how many features two rows share.

It is a Golomb-coded set, a compressed Bloom filter with one hash (Putze, Sanders, Singler 2007): each of n
features has a place among 5n, by the upper half of its hash, and the differences of the ascending places are
in a Rice code. Two features may have the same place, so a shared place is not proof of a shared feature; a
place that the other row does not have is proof of a feature that it does not have. So the number of shared
features has an upper bound, and a candidate pair that cannot reach the threshold is ruled out without its
texts. It takes three and a half bits a feature, and rules out about nine tenths of the pairs that share no
more than a set phrase.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow.candidates._bits import get_bits, get_rice, put_bits, put_unary
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.kernels import RuleNumbers, least_shared
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import CHARACTERS, SECTIONS, Details

MOST_FEATURES: Final = 4_000
"""A row with more has no set: it would be large, and such a row is rare."""

_PLACES_A_FEATURE: Final = 5
_COUNT_BITS: Final = np.int64(16)
"""The number of features, and in the last of these bits whether they are 3-grams."""
_KIND_BITS: Final = np.int64(1)
_SHIFT: Final = np.int64(2)
_SLACK_BYTES: Final = 16
# A place is less than 5n, so all quotients of a set together are less than 5n / 4: two bits a feature, and
# three for the end and the remainder of each.
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
    sets: Sequence[bytes | None],
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
    if asked.rule.measure < 0 or not any(sets):
        return np.ones(which.size, np.bool_)
    given = [each or b"" for each in sets]
    starts = np.cumsum([0, *map(len, given)]).astype(np.int64)
    packed = np.frombuffer(b"".join([*given, bytes(_SLACK_BYTES)]), np.uint8)
    rule = asked.rule
    of_grams = [*MEASURES.values()][rule.measure].features == "grams"
    may: NDArray[np.bool_] = _may_be_alike(
        asked.starts, asked.hashes, which, rows, packed, starts, rule.measure, rule.threshold, of_grams
    )
    return may


@inner
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
            head = np.uint64((size << _KIND_BITS) | np.int64(of_grams))
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
def _may_be_alike(starts, hashes, asked, rows, packed, set_starts, measure, threshold, of_grams):
    may = np.ones(asked.size, np.bool_)
    for p in range(asked.size):
        begin, end = set_starts[rows[p]] * 8, set_starts[rows[p] + 1] * 8
        if begin == end:
            continue
        first, last = starts[asked[p]], starts[asked[p] + 1]
        head = np.int64(get_bits(packed, begin, end, _COUNT_BITS))
        if head & 1 != np.int64(of_grams):
            continue
        size = head >> _KIND_BITS
        least = least_shared(measure, threshold, last - first, size)
        may[p] = _most_shared(hashes[first:last], packed, begin + _COUNT_BITS, end, size, least) >= least
    return may


@inner
def _has_code(packed, place, end):
    """Return whether another code follows: each has a 1, and after the last one there are at most seven 0."""
    return place + 7 < end or get_bits(packed, place, end, end - place) != 0


@inner
def _most_shared(hashes, packed, place, end, size, least):
    """Return an upper bound of the features that a row shares with a set; a lower number than the bound, but
    below `least`, where it is clear that they are fewer."""
    places = size * _PLACES_A_FEATURE
    own = theirs = np.int64(
        0
    )  # features of the row, and places of the set, that the other side does not have
    most_own, most_theirs = hashes.size - least, size - least
    i, at = np.int64(0), np.int64(-1)
    mine = _place_or_end(hashes, i, places)
    while _has_code(packed, place, end):
        gap, place = get_rice(packed, place, end, _SHIFT)
        at += 1 + gap
        while mine < at:
            own += 1
            i += 1
            mine = _place_or_end(hashes, i, places)
        if mine > at:
            theirs += 1
        while mine == at:
            i += 1
            mine = _place_or_end(hashes, i, places)
        if own > most_own or theirs > most_theirs:
            return np.int64(0)
    own += hashes.size - i
    return min(hashes.size - own, size - theirs)


@inner
def _place_or_end(hashes, i, places):
    """Return the place of a feature; a place after all others if there are no more features."""
    return _place_of(hashes[i], places) if i < hashes.size else places
