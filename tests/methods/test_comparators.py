"""Comparisons of pairs: values worked by hand, second implementations, and the properties of all of them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.flow.candidates.minhash import hash_functions
from db_dedup.flow.features.counting import Features
from db_dedup.methods import (
    METHODS,
    cityhash64,
    cosine,
    find_entry,
    frequency,
    hamming,
    hamming32,
    i_match,
    jaccard,
    jaccard_of_shorter,
    minhash,
    minhash_smallest,
    simhash32,
    simhash64,
    simhash_cosine,
    simhash_vectors,
    unweighted,
)
from db_dedup.methods.entries import Compare
from tests.methods.corpora import corpus, of_tokens, rows_of, token_lists


def features(*rows: dict[int, int]) -> Features:
    """Rows of hash -> weight."""
    ordered = [dict(sorted(row.items())) for row in rows]
    return Features(
        np.cumsum([0, *map(len, ordered)]),
        np.array([hashed for row in ordered for hashed in row], np.uint64),
        np.array([weight for row in ordered for weight in row.values()], np.int64),
    )


def all_pairs(compare: Compare, rows: int) -> NDArray[np.float64]:
    """float64[n, n]: each row with each."""
    left, right = np.divmod(np.arange(rows * rows), rows)
    return compare(left, right).reshape(rows, rows)


def test_simhash_by_hand() -> None:
    """Bit 0 has 2 + 3, bit 1 has 3 - 2, bit 2 has 2 - 3, all others -2 - 3."""
    row = features({0b101: 2, 0b011: 3}, {}, {0b101 | 1 << 32: 1})
    sums = simhash_vectors(row)
    assert sums[0].tolist() == [5, 1, -1] + [-5] * 61
    assert not sums[1].any()
    assert simhash64(row).tolist() == [0b011, 0, 0b101 | 1 << 32]
    assert simhash32(row).tolist() == [0b011, 0, 0b101]
    left, right = np.array([0, 0, 0]), np.array([0, 1, 2])
    assert hamming(row)(left, right).tolist() == [0, math.inf, 3]
    assert hamming32(row)(left, right).tolist() == [0, math.inf, 2]


@given(token_lists)
def test_vectors_have_the_signs_of_the_fingerprint(tokens: list[list[str]]) -> None:
    row = frequency(of_tokens(tokens))
    bits = (simhash64(row)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert ((simhash_vectors(row) > 0) == (bits == 1)).all()


def test_simhash_cosine_by_hand() -> None:
    """The vectors (5, 1, -1, -5, ...) and (-1, 1, -1, -1, ...), the second also with all signs turned."""
    row = features({0b101: 2, 0b011: 3}, {0b010: 1}, {0b010 ^ (2**64 - 1): 1}, {5: 1, 5 ^ (2**64 - 1): 1})
    norm = math.sqrt(25 + 1 + 1 + 61 * 25)
    found = simhash_cosine(row)(np.array([0, 0, 0, 3]), np.array([1, 2, 3, 3]))
    assert found == pytest.approx([(-5 + 1 + 1 + 61 * 5) / (norm * 8), 0, 0, 0])


def test_sets_and_weights_by_hand() -> None:
    row = features({2: 1, 3: 2, 4: 2}, {2: 3, 3: 4})
    pair = np.array([0]), np.array([1])
    assert jaccard(row)(*pair).tolist() == [2 / 3]
    assert jaccard_of_shorter(row)(*pair).tolist() == [1.0]
    assert cosine(row)(*pair) == pytest.approx([(3 + 8) / (3 * 5)])


@given(token_lists)
def test_sets_are_compared_as_python_compares_them(tokens: list[list[str]]) -> None:
    sets = [set(own) for own in tokens]
    row = unweighted(of_tokens(tokens))
    whole, shorter = all_pairs(jaccard(row), len(sets)), all_pairs(jaccard_of_shorter(row), len(sets))
    for i, one in enumerate(sets):
        for j, other in enumerate(sets):
            assert whole[i, j] == (len(one & other) / len(one | other) if one and other else 0)
            assert shorter[i, j] == (len(one & other) / min(len(one), len(other)) if one and other else 0)


@given(token_lists)
def test_minhash_takes_the_least_values(tokens: list[list[str]]) -> None:
    row = unweighted(of_tokens(tokens))
    multipliers, offsets = (array.tolist() for array in hash_functions(7))
    values = [
        [[(h * m + o) % 2**64 for h in own] for m, o in zip(multipliers, offsets, strict=True)]
        for own in rows_of(row)
    ]
    many, one = all_pairs(minhash(7)(row), len(tokens)), all_pairs(minhash_smallest(3)(row), len(tokens))
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            has_both = bool(a[0] and b[0])
            equal = sum(min(x) == min(y) for x, y in zip(a, b, strict=True)) if has_both else 0
            assert many[i, j] == pytest.approx(equal / 7)
            x, y = set(sorted(a[0])[:3]), set(sorted(b[0])[:3])
            assert one[i, j] == (len(x & y) / len(x | y) if has_both else 0)


@pytest.mark.parametrize("similarity", [0.2, 0.5, 0.8])
def test_minhash_estimates_jaccard(similarity: float) -> None:
    chance = np.random.default_rng(1)
    size, trials, functions = 120, 300, 50
    shared = round(2 * size * similarity / (1 + similarity))
    rows = []
    for _ in range(trials):
        hashes = chance.integers(2, 2**64, 2 * size - shared, np.uint64).tolist()
        rows += [dict.fromkeys(hashes[:size], 1), dict.fromkeys(hashes[size - shared :], 1)]
    row, left = features(*rows), np.arange(0, 2 * trials, 2)
    exact = jaccard(row)(left, left + 1)
    estimated = minhash(functions)(row)(left, left + 1)
    deviation = math.sqrt(similarity * (1 - similarity) / functions / trials)
    assert abs(float(np.mean(estimated - exact))) < 4 * deviation
    smallest = minhash_smallest(functions)(row)(left, left + 1)
    assert abs(float(np.mean(smallest - exact))) < 0.12, "P4's estimate of one hash has a bias"


def test_i_match_by_hand() -> None:
    """All have 扰民, the first three 施工; 夜间 and the words of the last text are in one text each."""
    some = corpus("扰民 施工 噪音", "施工 噪音 噪音 扰民 夜间", "扰民 施工", "公交 晚点 扰民")
    compare = i_match(lowest=0.1, highest=0.9)(frequency(some))
    assert all_pairs(compare, 4).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_i_match_keeps_the_ends_of_its_band() -> None:
    row = frequency(corpus("a b", "a b", "a c"))
    assert all_pairs(i_match(0, 1)(row), 3).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert all_pairs(i_match(1, 1)(row), 3).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert all_pairs(i_match()(frequency(corpus("a"))), 1).tolist() == [[0]], (
        "of one text each word has IDF 0"
    )


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=25)  # of each of many
@given(tokens=token_lists)
def test_properties_of_every_method(name: str, tokens: list[list[str]]) -> None:
    entry = find_entry(METHODS, name)
    row = frequency(of_tokens([*tokens, tokens[0]]), cityhash64)
    count = len(tokens) + 1
    found = all_pairs(entry.load()(row), count)
    assert (found == found.T).all(), "symmetric"
    has_features = row.counts > 0
    both = np.outer(has_features, has_features)
    alike, unlike = (1, 0) if entry.higher_is_alike else (0, math.inf)
    assert (found[~both] == unlike).all()
    if entry.higher_is_alike:
        assert ((found >= 0) & (found <= 1)).all()
    else:
        assert ((found[both] >= 0) & (found[both] <= 64)).all()
    if name != "i-match":  # which drops words that all or few texts contain
        assert found.diagonal()[has_features] == pytest.approx(alike)
    assert found[0] == pytest.approx(found[-1]), "equal rows are alike to the same rows"


@pytest.mark.parametrize("name", METHODS)
def test_the_strictest_threshold_comes_first(name: str) -> None:
    entry = METHODS[name]
    values = np.array([0.0, 0.5, 1.0, 3.0, math.inf])
    accepted = [int(entry.are_alike(values, threshold).sum()) for threshold in entry.thresholds]
    assert accepted == sorted(accepted)
    assert len(set(entry.thresholds)) == len(entry.thresholds) > 0


@pytest.mark.parametrize("name", ["minhash:20", "simhash-cosine"])
def test_many_pairs_are_compared_in_pieces(name: str) -> None:
    row = frequency(corpus("a b", "a c", "d"))
    left, right = np.random.default_rng(1).integers(0, 3, (2, 150_000))
    compare = METHODS[name].load()(row)
    assert (compare(left, right) == all_pairs(compare, 3)[left, right]).all()


def test_no_pairs_and_no_rows() -> None:
    nobody = np.empty(0, np.int64)
    for entry in METHODS.values():
        assert entry.load()(frequency(corpus("a b")))(nobody, nobody).shape == (0,)
        assert entry.load()(frequency(corpus()))(nobody, nobody).shape == (0,)


@pytest.mark.parametrize("name", METHODS)
def test_a_row_whose_weights_are_all_zero(name: str) -> None:
    # Rows 0 and 1 have the same features, row 2 another one; the weights of row 0 and row 2 are 0.
    features = Features(
        np.array([0, 2, 4, 5]), np.array([5, 9, 5, 9, 7], np.uint64), np.array([0, 0, 1, 2, 0], np.int64)
    )
    entry = METHODS[name]
    zero, row = np.array([0, 0, 0]), np.array([0, 1, 2])
    values = entry.load()(features)(zero, row)
    if entry.uses_weights:
        assert (values == (0 if entry.higher_is_alike else np.inf)).all()
        itself = entry.load()(features)(row[1:2], row[1:2])
        assert itself == pytest.approx(float(entry.higher_is_alike))
    elif name != "i-match":  # its band depends on the corpus
        assert values.tolist() == [1, 1, 0]


def test_bad_parameters() -> None:
    with pytest.raises(ConfigError, match="at least 1 value, not 0"):
        minhash(0)
    with pytest.raises(ConfigError, match="at least 1 value, not -1"):
        minhash_smallest(-1)
    with pytest.raises(ConfigError, match=r"the IDF band must be within 0 and 1, not 0.9 to 0.1"):
        i_match(0.9, 0.1)
    with pytest.raises(UnknownNameError, match="jaccard"):
        find_entry(METHODS, "jacard")
