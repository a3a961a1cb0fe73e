"""The set of a row's features in a few bits each, which tells at most how many features two rows share.

It is a Golomb-coded set, a compressed Bloom filter with one hash (Putze, Sanders, Singler 2007): each of n
features has a place, the first k bits of its hash, and the differences of the ascending places are in a Rice
code. There are 9 to 18 places a feature: k is the least number for which 2**k is 9n or more, and one more for
sets of 86 to 113 features, which would be crowded with the features of a long text. Two features may have the
same place, so a shared place is not proof of a shared feature; a place that the other row does not have is
proof of a feature that it does not have. So the number of shared features has an upper bound, and a candidate
pair that cannot reach the threshold is ruled out without its texts. It takes about six bits a feature, and
rules out nearly all pairs that share no more than a set phrase.

Two short rows are compared by their edits, for which the bound does not hold. So the set of a short row is
the number of its features alone, which rules out pairs with longer rows.

As the places are bits of the hash, the features of an asked row are the same bitmap for all candidates with
one k, and 64 places are compared at once. Former versions had fewer places in some sets, or 12n or 5n; their
sets are read, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare import _set_kernels as kernels
from db_dedup.flow.compare.kernels import RuleNumbers
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import CHARACTERS, SECTIONS, Details
from db_dedup.flow.threads import in_threads, split_evenly

MOST_FEATURES: Final = kernels.MOST_FEATURES
_PAIRS_WORTH_THREADS: Final = 10_000
SLACK_BYTES: Final = 16
"""How many bytes there must be behind the last set of an array, for the kernels that read it."""


@dataclass(frozen=True)
class AskedFeatures:
    """The features of n rows whose candidates are looked for, and the rule.

    Attributes:
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], ascending and distinct within a row.
        is_short: bool[n], which rows are short.
        rule: by which candidates are confirmed.
    """

    starts: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    is_short: NDArray[np.bool_]
    rule: RuleNumbers

    @classmethod
    def of(cls, features: Features, details: Details, rows: NDArray[np.int64], rule: RuleNumbers) -> Self:
        """Return copies of the features of some rows."""
        taken = Sketches(features.starts, features.hashes).take(rows)
        return cls(taken.starts, taken.values, _are_short(details)[rows], rule)


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
        # Like the sets in memory it can be written to: for others the kernel is compiled once more.
        packed = np.frombuffer(bytearray().join([*given, bytes(SLACK_BYTES)]), np.uint8)
        return cls(packed, starts[:-1], starts[1:])


def feature_sets(
    features: Features, details: Details, counts: NDArray[np.int64], *, of_grams: bool
) -> list[bytes | None]:
    """Return the set of each of n rows; None for a row that has none.

    A row without a sketch, which is no candidate by hashes, has no set, nor has one with too many features.

    Args:
        features: of the n rows.
        details: of the n rows.
        counts: int64[n], how many hashes the sketch of each row has.
        of_grams: the features are 3-grams of characters, not words. The set tells, since a scan with another
            measure leaves the sets of unchanged rows as they are.
    """
    sizes = features.counts
    has_set = (counts > 0) & (sizes > 0) & (sizes <= MOST_FEATURES)
    packed, ends = kernels.pack(features.starts, features.hashes, has_set, _are_short(details), of_grams)
    content, begin = packed.tobytes(), 0
    found: list[bytes | None] = []
    for end in ends.tolist():
        found.append(content[begin:end] or None)
        begin = end
    return found


def _are_short(details: Details) -> NDArray[np.bool_]:
    """Return bool[n]: which rows are short, by their details."""
    return np.diff(details.starts)[CHARACTERS::SECTIONS] > 0


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
    if not which.size or rule.measure < 0 or not np.any(sets.begins < sets.ends):
        return np.ones(which.size, np.bool_)
    of_grams = [*MEASURES.values()][rule.measure].features == "grams"
    may = np.ones(which.size, np.bool_)
    bitmaps = kernels.bitmaps(asked.starts, asked.hashes, *sets)

    def compare(first: int, end: int) -> None:
        """Compare the pairs with a range of candidates, each of which is unpacked once."""
        kernels.compare(
            *(asked.starts, asked.hashes, asked.is_short, which, rows, *sets, rule.measure, rule.threshold),
            *(of_grams, *bitmaps, first, end, may),
        )

    # Ranges with as many pairs each: the candidates may be close together among the rows.
    parts = threads if rows.size >= _PAIRS_WORTH_THREADS else 1
    middles = np.array(split_evenly(0, rows.size, parts)[1:-1], np.int64)
    bounds = [0, *np.partition(rows, middles)[middles].tolist(), sets.begins.size]
    for _ in in_threads(len(bounds) - 1, compare, bounds[:-1], bounds[1:]):
        pass
    return may
