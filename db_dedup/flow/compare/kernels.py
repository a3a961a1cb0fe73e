"""The compiled form of the rule: whether a pair is a candidate pair and a duplicate pair, and its similarity.

The kernels of `matching` call these functions for single pairs, `rule.py` for arrays of pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import place_in
from db_dedup.flow._by_pointer import Arrays, ArraysType, address_of, caller_of
from db_dedup.flow._compiled import addressed, inner, is_kept, is_on_disk, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.candidates.sketches import share_enough
from db_dedup.flow.compare.edit_distance import edit_similarity, is_short
from db_dedup.flow.compare.kinds import kind_of_sets, name_other_places
from db_dedup.flow.compare.long_grams import are_long, least_shared_long, long_overlap
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.compare.numbers import have_other_numbers
from db_dedup.flow.features.details import LONG_GRAMS, SECTIONS, Details
from db_dedup.records.kinds import UNKNOWN, excluded_by

NO_MEASURE: Final = -1
"""Takes the place of a measure's number if every candidate pair is a duplicate pair."""


@dataclass(frozen=True)
class RowArrays(Arrays):
    """n rows as the kernels take them.

    Attributes:
        fingerprints: uint64[n].
        within: int32[n], equal where rows agree in the `within` columns.
        places: int64[n], each row's number among the features.
        starts: int64[f + 1], the features' slices of hashes and weights.
        hashes: uint64[m], ascending and distinct within a row.
        weights: int64[m]; empty if the measure needs none.
        detail_starts: int64[3f + 1], the sections of the details, as `details.Details` has them.
        details: uint64[d].
        sketch_starts: int64[s + 1], the sketches' slices of their values.
        sketch_values: uint64[k], ascending and distinct within a sketch; empty where there are no sketches.
        sketch_places: int64[n], each row's number among the sketches.
        rejected: int64[r], ascending: pairs labelled as no duplicates, packed as by `rejections.pack`.
    """

    fingerprints: NDArray[np.uint64]
    within: NDArray[np.int32]
    places: NDArray[np.int64]
    starts: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    weights: NDArray[np.int64]
    detail_starts: NDArray[np.int64]
    details: NDArray[np.uint64]
    sketch_starts: NDArray[np.int64]
    sketch_values: NDArray[np.uint64]
    sketch_places: NDArray[np.int64]
    rejected: NDArray[np.int64]


class RuleNumbers(NamedTuple):
    """The rule as the kernels take it.

    Attributes:
        radius: bits.
        measure: the measure's number, or `NO_MEASURE`.
        threshold: 0 to 1.
        short_threshold: the edit similarity from which on two short rows are duplicates, whatever the measure
            says, unless each has a number that the other does not; 0 if this does not count.
        long_grams: whether two rows that both have long grams are compared by these, too.
        excluded: which pairs are no duplicates because of their kind, as by `records.kinds.excluded_mask`.
        confirmed_at: the address of `_confirmed`, which decides a pair.
    """

    radius: int
    measure: int
    threshold: float
    short_threshold: float
    long_grams: bool
    excluded: int
    confirmed_at: int


def measure_number(name: str) -> int:
    """Return the number of a measure in the kernels; raise KeyError if there is no such measure."""
    return {known: number for number, known in enumerate(MEASURES)}[name]


def _nothing(number, x, y, z):  # noqa: ARG001 - called in place of a measure's function
    """Return 0: the number is that of no measure."""
    return 0


def _chained(functions: Sequence[Callable[..., Any]], first_number: int = 0) -> Any:
    """Return one compiled function that calls the function of a given number."""
    if not functions:
        return inner(_nothing)
    own, others = inner(functions[0]), _chained(functions[1:], first_number + 1)

    @inner
    def call(number, x, y, z):
        if number == first_number:
            return own(x, y, z)
        return others(number, x, y, z)

    return call


_similarity = _chained([measure.similarity for measure in MEASURES.values()])
_least_shared = _chained([measure.least_shared for measure in MEASURES.values()])
_excluded_by = inner(excluded_by)
_OF_WEIGHTS = np.array([measure.of_weights for measure in MEASURES.values()], np.bool_)


def similarities(
    measure: str,
    starts: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    weights: NDArray[np.int64],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the similarity of row left[i] and row right[i], for every i.

    Args:
        measure: one of `MEASURES`.
        starts: int64[n + 1], the rows' slices of hashes and weights.
        hashes: uint64[m], ascending and distinct within a row.
        weights: int64[m]; only the cosine uses them.
        left: int32[p], row numbers.
        right: int32[p], row numbers.

    Returns:
        float64[p] from 0 (nothing shared) to 1; 0 where either row has no feature.
    """
    result: NDArray[np.float64] = _similarities(measure_number(measure), starts, hashes, weights, left, right)
    return result


def long_similarities(
    details: Details, left: NDArray[np.int32], right: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return float64[p]: the similarity of each two rows by their long grams; 1 where these do not count."""
    result: NDArray[np.float64] = _long_similarities(details.starts, details.values, left, right)
    return result


@inner
def similarity_of(measure, starts, hashes, weights, a, b, least=0):
    """Return the similarity of rows a and b, by a merge of their sorted features.

    The result may be 0 if the rows share fewer than `least` features.
    """
    size_a, size_b = starts[a + 1] - starts[a], starts[b + 1] - starts[b]
    if size_a == 0 or size_b == 0:
        return 0.0
    # Other measures have no weights in memory, and numba does not check the bounds of an array.
    if _OF_WEIGHTS[measure]:
        product = _product(starts, hashes, weights, a, b)
        square_a, square_b = _square(starts, weights, a), _square(starts, weights, b)
        return _similarity(measure, product, square_a, square_b)
    shared = _count_shared(hashes, starts[a], starts[a + 1], starts[b], starts[b + 1], least)
    return _similarity(measure, float(shared), float(size_a), float(size_b))


@inner
def least_shared(measure, threshold, size_a, size_b):
    """Return how many features two rows must share to reach the threshold; 0 if the measure has no bound.

    Args:
        measure: its number.
        threshold: 0 to 1.
        size_a: number of features of the one row.
        size_b: number of features of the other.
    """
    if threshold <= 0:
        return 0
    return _least_shared(measure, threshold, np.int64(size_a), np.int64(size_b))


@inner
def is_candidate(a, b, rows, rule):
    """Return whether rows a and b are a candidate pair by some candidate generator."""
    values = rows.fingerprints
    if popcount(values[a] ^ values[b]) <= np.uint64(rule.radius):
        return True
    return share_enough_hashes(a, b, rows)


@inner
def share_enough_hashes(a, b, rows):
    """Return whether the sketches of rows a and b share enough hashes."""
    places = rows.sketch_places
    return share_enough(rows.sketch_starts, rows.sketch_values, places[a], places[b])


@inner
def are_short(a, b, rows, rule):
    """Return whether few edits are enough for rows a and b. Then no bound of the measure holds for them."""
    if rule.short_threshold <= 0:
        return False
    return is_short(rows.detail_starts, rows.places[a]) and is_short(rows.detail_starts, rows.places[b])


@inner
def confirmed(a, b, rows, rule):
    """Decide a candidate pair, by `_confirmed`, which is compiled once and not into each kernel.

    Returns:
        (whether rows a and b are duplicates, their similarity, NaN if it was not needed).
    """
    return _call_confirmed(rule.confirmed_at, (a, b, rows, rule))


@addressed
def _confirmed(a, b, rows, rule):
    if rows.within[a] != rows.within[b]:
        return False, np.nan
    is_alike, similarity = _is_alike(a, b, rows, rule)
    if not is_alike or (rule.excluded and _is_excluded(kind_of(a, b, rows, rule), rule)):
        return False, similarity
    return not _is_rejected(a, b, rows.rejected), similarity


_ARGUMENTS = nb.int64, nb.int64, ArraysType(RowArrays), nb.typeof(RuleNumbers(0, 0, 0.0, 0.0, False, 0, 0))
_call_confirmed = caller_of(nb.types.Tuple((nb.boolean, nb.float64)), _ARGUMENTS)


def address_of_rule() -> int:
    """Return the address of the compiled function that decides pairs, for `RuleNumbers`."""
    return address_of(_confirmed, _ARGUMENTS)


def is_rule_missing() -> bool:
    """Return whether the function that decides pairs can be kept on the disk and is not there yet."""
    return is_kept(_confirmed) and not is_on_disk(_confirmed, _ARGUMENTS)


@inner
def _is_alike(a, b, rows, rule):
    """Return (whether rows a and b are alike enough, their similarity, NaN if it was not needed)."""
    if rule.measure < 0:
        return True, np.nan
    one, other, starts = rows.places[a], rows.places[b], rows.starts
    is_short_pair = are_short(a, b, rows, rule)
    if is_short_pair:
        similarity = edit_similarity(rows.detail_starts, rows.details, one, other, rule.short_threshold)
        if similarity >= rule.short_threshold:
            return not have_other_numbers(rows.detail_starts, rows.details, one, other), similarity
    least = least_shared(
        rule.measure, rule.threshold, starts[one + 1] - starts[one], starts[other + 1] - starts[other]
    )
    similarity = similarity_of(rule.measure, starts, rows.hashes, rows.weights, one, other, least)
    if rule.long_grams and similarity >= rule.threshold:
        by_long = _long_similarity(rows.detail_starts, rows.details, one, other, rule.threshold)
        similarity = min(similarity, by_long)
    is_alike = similarity >= rule.threshold
    if is_alike and is_short_pair:
        is_alike = not have_other_numbers(rows.detail_starts, rows.details, one, other)
    return is_alike, similarity


@inner
def _long_similarity(starts, details, a, b, threshold):
    """Return `long_overlap` of two rows; the result may be 0 if it is below the threshold."""
    i, i_end = long_grams_of(starts, a)
    j, j_end = long_grams_of(starts, b)
    least = least_shared_long(threshold, i_end - i, j_end - j)
    shared = _count_shared(details, i, i_end, j, j_end, least)
    return long_overlap(float(shared), float(i_end - i), float(j_end - j))


@inner
def long_grams_of(starts, row):
    """Return where a row's long grams begin and end in the details."""
    place = row * SECTIONS + LONG_GRAMS
    return starts[place], starts[place + 1]


@kernel
def confirm_pairs(left, right, rows, rule):
    """Return (bool[p], float64[p], uint8[p]): what `confirmed` says of each pair, and the kinds."""
    are_duplicates = zeros(left.size, np.bool_)
    scores, kinds = empty(left.size, np.float64), zeros(left.size, np.uint8)
    for p in range(left.size):
        are_duplicates[p], scores[p] = confirmed(left[p], right[p], rows, rule)
        if are_duplicates[p]:
            kinds[p] = kind_of(np.int64(left[p]), np.int64(right[p]), rows, rule)
    return are_duplicates, scores, kinds


@inner
def kind_of(a, b, rows, rule):
    """Return the packed kind of rows a and b; `UNKNOWN` if no measure compares them.

    The kind is decided by the features that the measure compares: for two long texts in letters their long
    grams.
    """
    if rule.measure < 0:
        return np.uint8(UNKNOWN)
    one, other = rows.places[a], rows.places[b]
    starts, hashes = rows.starts, rows.hashes
    i, i_end, j, j_end = starts[one], starts[one + 1], starts[other], starts[other + 1]
    sections = rows.detail_starts
    if rule.long_grams:
        long_i, long_i_end = long_grams_of(sections, one)
        long_j, long_j_end = long_grams_of(sections, other)
        if are_long(long_i_end - long_i, long_j_end - long_j):
            hashes = rows.details
            i, i_end, j, j_end = long_i, long_i_end, long_j, long_j_end
    shared = _count_shared(hashes, i, i_end, j, j_end, np.int64(0))
    names_other = name_other_places(rows.detail_starts, rows.details, one, other)
    return kind_of_sets(shared, i_end - i, j_end - j, are_short(a, b, rows, rule), names_other)


@kernel
def kinds_of(left, right, rows, rule):
    """Return uint8[p]: the packed kind of each pair, duplicates or not."""
    kinds = zeros(left.size, np.uint8)
    for p in range(left.size):
        kinds[p] = kind_of(np.int64(left[p]), np.int64(right[p]), rows, rule)
    return kinds


@inner
def _is_excluded(kind, rule):
    return _excluded_by(np.int64(rule.excluded), np.int64(kind)) == 1


@inner
def _is_rejected(a, b, rejected):
    """Return whether people have labelled rows a and b as no duplicates."""
    if rejected.size == 0:
        return False
    packed = (np.int64(min(a, b)) << 32) | np.int64(max(a, b))
    place = place_in(rejected, packed)
    return place < rejected.size and rejected[place] == packed


@inner
def _count_shared(hashes, i, i_end, j, j_end, least):
    """Count the shared features; return 0 as soon as it is clear that they are fewer than `least`.

    The loop has no branch on which hash is smaller, since the processor would often predict it wrongly.
    """
    i_most, j_most = i_end - least, j_end - least
    shared = 0
    while i < i_end and j < j_end:
        one, other = hashes[i], hashes[j]
        shared += one == other
        i += one <= other
        j += other <= one
        if i - shared > i_most or j - shared > j_most:
            return 0
    return shared


@inner
def _product(starts, hashes, weights, a, b):
    i, i_end = starts[a], starts[a + 1]
    j, j_end = starts[b], starts[b + 1]
    product = 0.0
    while i < i_end and j < j_end:
        if hashes[i] == hashes[j]:
            product += float(weights[i]) * float(weights[j])
            i += 1
            j += 1
        elif hashes[i] < hashes[j]:
            i += 1
        else:
            j += 1
    return product


@inner
def _square(starts, weights, row):
    total = 0.0
    for i in range(starts[row], starts[row + 1]):
        total += float(weights[i]) * float(weights[i])
    return total


@kernel
def _similarities(measure, starts, hashes, weights, left, right):
    result = empty(left.size, np.float64)
    for p in range(left.size):
        result[p] = similarity_of(measure, starts, hashes, weights, left[p], right[p])
    return result


@kernel
def _long_similarities(starts, details, left, right):
    result = empty(left.size, np.float64)
    for p in range(left.size):
        result[p] = _long_similarity(starts, details, left[p], right[p], 0.0)
    return result
