"""Comparisons of two rows by their features.

Each takes the features of n rows and returns what compares pairs of them: (left int[p], right int[p]) ->
float64[p]. A similarity is 0 to 1, a distance is 0 or more. Both are symmetric; a row is fully alike
to itself. A row without features, or without what a comparison needs of them, is like no other, not even
itself: similarity 0, distance infinity. For a comparison of weights, the same is true of a row whose weights
are all 0. The registry's features leave out what weighs 0, so they contain no such row.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from cityhash import CityHash64
from numpy.typing import NDArray

from db_dedup.errors import InvalidArgumentError
from db_dedup.flow._arrays import starts_of
from db_dedup.flow.candidates.minhash import find_minima, hash_functions
from db_dedup.flow.compare.kernels import similarities
from db_dedup.flow.features.counting import Features
from db_dedup.methods.entries import Compare, Prepare, Rows
from db_dedup.methods.features import inverse_document_frequencies
from db_dedup.methods.fingerprints import simhash32, simhash64, simhash_vectors

_PAIRS_A_PIECE: Final = 65_536

IDF_BAND: Final = (0.4, 0.8)
"""The lowest and highest normalised IDF of the words that I-Match keeps, unless the caller says otherwise."""


def hamming(features: Features) -> Compare:
    """Compare 64-bit SimHashes: the number of bits in which they differ, 0 to 64 (P1: 3, P2: 3, P3: below 5).

    Time: one XOR for each pair.
    """
    return _distances(simhash64(features), features)


def hamming32(features: Features) -> Compare:
    """Compare SimHashes of 32 bits: the number of bits in which they differ, 0 to 32 (P5: 2).

    Time: one XOR for each pair.
    """
    return _distances(simhash32(features), features)


def simhash_cosine(features: Features) -> Compare:
    """Compare SimHash vectors by their cosine, below zero as 0 (P4: the sums before the sign).

    A vector of zeros, whose features cancel each other or weigh 0, has the similarity 0. Time: 64 products
    for each pair.
    """
    vectors = simhash_vectors(features).astype(np.float64)
    norms = np.linalg.norm(vectors, axis=1)
    units = np.divide(vectors, norms[:, None], out=np.zeros_like(vectors), where=norms[:, None] > 0)

    def compare(left: Rows, right: Rows) -> NDArray[np.float64]:
        result: NDArray[np.float64] = np.clip(np.einsum("ij,ij->i", units[left], units[right]), 0.0, 1.0)
        return result

    return _piece_by_piece(compare)


def jaccard(features: Features) -> Compare:
    """Compare the sets of features: the share of the common ones among all, |A∩B| / |A∪B| (P4; P5: 0.2).

    Time: linear in the features of the two rows for each pair, as for the next two.
    """
    return _of_features("word_jaccard", features)


def jaccard_of_shorter(features: Features) -> Compare:
    """Compare the sets of features: the share of the common ones among those of the smaller set.

    |A∩B| / min(|A|, |B|): P4's improved Jaccard similarity, which finds texts contained in another one. The
    product calls it the overlap coefficient.
    """
    return _of_features("overlap", features)


def cosine(features: Features) -> Compare:
    """Compare the vectors of weights by their cosine (P4; P5: 0.95)."""
    return _where(_have_weight(features), _of_features("cosine", features), 0.0)


def minhash(functions: int) -> Prepare:
    """Return what compares the minima of so many hash functions: the share of equal ones (P4; P5: 20
    functions).

    The share estimates the Jaccard similarity J of the sets; its standard error is sqrt(J * (1 - J) /
    functions). Time: that many products for each feature, then that many comparisons for each pair; 8 bytes a
    function and row.

    Raises:
        InvalidArgumentError: fewer than one function.
    """
    _check_count(functions)

    def prepare(features: Features) -> Compare:
        minima = find_minima(features.starts, features.hashes, functions)

        def compare(left: Rows, right: Rows) -> NDArray[np.float64]:
            result: NDArray[np.float64] = np.mean(minima[left] == minima[right], axis=1)
            return result

        return _with_features(features, _piece_by_piece(compare), 0.0)

    return prepare


def minhash_smallest(size: int) -> Prepare:
    """Return what compares, by Jaccard, the sets of the `size` smallest values of one hash function (P4).

    As in P4 it is the Jaccard similarity of these two sets; it estimates that of the whole sets, with a bias.
    Time: sorts the features of each row once, then linear in `size` for each pair; 8 * size bytes a row.

    Raises:
        InvalidArgumentError: a size below 1.
    """
    _check_count(size)

    def prepare(features: Features) -> Compare:
        multipliers, offsets = hash_functions(1)
        values = features.hashes * multipliers[0] + offsets[0]
        counts = features.counts
        rows = np.repeat(np.arange(counts.size), counts)
        values = values[np.lexsort((values, rows))]
        rank = np.arange(values.size) - features.starts[rows]
        starts = starts_of(np.minimum(counts, size))
        smallest = values[rank < size]
        return _of_features("word_jaccard", Features(starts, smallest, np.empty(0, np.int64)))

    return prepare


def i_match(lowest: float = IDF_BAND[0], highest: float = IDF_BAND[1]) -> Prepare:
    """Return what compares rows by I-Match: 1 if what is left of their words is equal, else 0 (P1).

    Words outside a band of IDF are dropped, and the sorted rest is hashed to 64 bits. A row of which nothing
    is left is like no other. Time: sorts the features of all rows, then one comparison for each pair.

    Args:
        lowest: least normalised IDF of a word that is kept. It is ln(n / d) / ln(n) for a word that d of n
            texts contain: 0 if all contain it, 1 if one does.
        highest: largest one. P1 does not name its band.

    Raises:
        InvalidArgumentError: the band is empty or outside of 0 to 1.
    """
    if not 0 <= lowest <= highest <= 1:
        raise InvalidArgumentError(
            "the IDF band must be within 0 and 1, not {lowest} to {highest}", lowest=lowest, highest=highest
        )

    def prepare(features: Features) -> Compare:
        kept = _within_band(features, lowest, highest)
        hashes = [
            CityHash64(kept.hashes[begin:end].tobytes())
            for begin, end in zip(kept.starts[:-1].tolist(), kept.starts[1:].tolist(), strict=True)
        ]
        signatures = np.array(hashes, np.uint64)

        def compare(left: Rows, right: Rows) -> NDArray[np.float64]:
            result: NDArray[np.float64] = (signatures[left] == signatures[right]).astype(np.float64)
            return result

        return _with_features(kept, compare, 0.0)

    return prepare


def _within_band(features: Features, lowest: float, highest: float) -> Features:
    rows = features.starts.size - 1
    # With one text the logarithm of n is 0, and so is the IDF of all words.
    largest = np.log(rows) if rows > 1 else 1.0
    idf = inverse_document_frequencies(features) / largest
    # A word that one text contains may come out as slightly more than 1.
    is_kept = (idf >= lowest) & (np.minimum(idf, 1.0) <= highest)
    kept_before = np.append(0, np.cumsum(is_kept))
    return Features(kept_before[features.starts], features.hashes[is_kept], features.weights[is_kept])


def _distances(fingerprints: NDArray[np.uint64], features: Features) -> Compare:
    def compare(left: Rows, right: Rows) -> NDArray[np.float64]:
        bits = np.bitwise_count(fingerprints[left] ^ fingerprints[right])
        result: NDArray[np.float64] = bits.astype(np.float64)
        return result

    return _where(_have_weight(features), compare, np.inf)


def _of_features(measure: str, features: Features) -> Compare:
    def compare(left: Rows, right: Rows) -> NDArray[np.float64]:
        # Of one type, so that numba compiles the kernel once.
        one, other = np.asarray(left, np.int32), np.asarray(right, np.int32)
        return similarities(measure, features.starts, features.hashes, features.weights, one, other)

    return compare


def _with_features(
    features: Features, compare: Callable[[Rows, Rows], NDArray[np.float64]], nothing: float
) -> Compare:
    """Return a comparison whose result is `nothing` where either row has no features."""
    return _where(features.counts > 0, compare, nothing)


def _have_weight(features: Features) -> NDArray[np.bool_]:
    """Return bool[n]: which rows have a weight other than 0."""
    kept_before = np.append(0, np.cumsum(features.weights != 0))
    result: NDArray[np.bool_] = np.diff(kept_before[features.starts]) > 0
    return result


def _where(
    is_there: NDArray[np.bool_], compare: Callable[[Rows, Rows], NDArray[np.float64]], nothing: float
) -> Compare:
    """Return a comparison whose result is `nothing` unless both rows are there, bool[n]."""

    def compare_all(left: Rows, right: Rows) -> NDArray[np.float64]:
        return np.where(is_there[left] & is_there[right], compare(left, right), nothing)

    return compare_all


def _piece_by_piece(compare: Compare) -> Compare:
    """Return a comparison that takes a part of the pairs at a time, where each needs hundreds of bytes."""

    def compare_all(left: Rows, right: Rows) -> NDArray[np.float64]:
        pieces = [slice(first, first + _PAIRS_A_PIECE) for first in range(0, left.size, _PAIRS_A_PIECE)]
        found = [compare(left[piece], right[piece]) for piece in pieces]
        return np.concatenate([np.empty(0), *found])

    return compare_all


def _check_count(count: int) -> None:
    if count < 1:
        raise InvalidArgumentError("MinHash needs at least 1 value, not {count}", count=count)
