"""Sets of features: their bound is never too low, and they rule out most pairs that share little."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from db_dedup.config import watched_table
from db_dedup.flow.compare import feature_sets as module
from db_dedup.flow.compare.feature_sets import (
    MOST_FEATURES,
    AskedFeatures,
    PackedSets,
    feature_sets,
    may_be_alike,
)
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import CHARACTERS, SECTIONS, Details

_WATCHED = watched_table("notes", {"columns": {"text": {"kind": "text"}}})
_RULE = Rule(_WATCHED.setting)
# Of integers, Hypothesis draws small ones most often, which would have the first place of every set.
_HASHES = st.binary(min_size=8, max_size=8).map(int.from_bytes)


def features_of(rows: list[list[int]]) -> Features:
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    hashes = np.array([hashed for row in rows for hashed in sorted(row)], np.uint64)
    return Features(starts, hashes, np.ones(hashes.size, np.int64))


def details_of(are_short: list[bool]) -> Details:
    """The details of rows, of which the short ones have two characters."""
    counts = np.zeros((len(are_short), SECTIONS), np.int64)
    counts[:, CHARACTERS] = np.where(are_short, 2, 0)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Details(starts, np.zeros(starts[-1], np.uint64))


def sets_of(
    rows: list[list[int]], *, of_grams: bool = True, are_short: list[bool] | None = None
) -> list[bytes | None]:
    details = details_of(are_short or [False] * len(rows))
    return feature_sets(features_of(rows), details, np.ones(len(rows), np.int64), of_grams=of_grams)


def asked_of(
    rows: list[list[int]], rule: Rule = _RULE, *, are_short: list[bool] | None = None
) -> AskedFeatures:
    details = details_of(are_short or [False] * len(rows))
    return AskedFeatures.of(features_of(rows), details, np.arange(len(rows)), rule.numbers)


def may(
    one: list[int], other: list[int], rule: Rule = _RULE, are_short: tuple[bool, bool] = (False, False)
) -> bool:
    asked, place = asked_of([one], rule, are_short=[are_short[0]]), np.zeros(1, np.int64)
    sets = sets_of([other], are_short=[are_short[1]])
    return bool(may_be_alike(asked, place, place, PackedSets.of(sets))[0])


def similarity(one: list[int], other: list[int], rule: Rule = _RULE) -> float:
    assert rule.measure is not None
    return rule.measure.similarity(len({*one} & {*other}), len(one), len(other))


@st.composite
def two_rows(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two rows that share some features, of hashes that may be close to each other."""
    close = st.integers(0, 300).map(lambda i: i << 32)
    hashes = st.one_of(_HASHES, close, st.integers(2**64 - 300, 2**64 - 1))
    # Sets with no smallest size are nearly always small.
    common = draw(st.sets(hashes, min_size=draw(st.integers(0, 100)), max_size=120))
    one, other = (common | draw(st.sets(hashes, max_size=60)) for _ in range(2))
    return [*(one or {1})], [*(other or {1})]


@given(two_rows(), st.sampled_from(["none", *MEASURES]), st.floats(0, 1) | st.just(1.0))
def test_duplicates_are_never_ruled_out(
    rows: tuple[list[int], list[int]], measure: str, share: float
) -> None:
    """With thresholds up to the similarity of the rows."""
    rule = Rule(replace(_WATCHED.setting, similarity=measure))
    if measure not in ("cosine", "none"):
        threshold = share * similarity(*rows, rule)
        rule = Rule(replace(rule.setting, threshold=threshold))
    assert may(*rows, rule)


def test_most_pairs_that_share_a_phrase_are_ruled_out() -> None:
    rng = np.random.default_rng(1)
    left = []
    for _ in range(300):
        one, other = (rng.integers(0, 2**64, 250, np.uint64).tolist() for _ in range(2))
        left.append(may(one, other[:200] + one[:50]))
    assert sum(left) < 5


FORMER_KINDS = [5, 9, 12]


def former_set_of(row: list[int], kind: int) -> bytes:
    """As former versions packed it: 5 or 12 places a feature, or the first bits of its hash."""
    count, shift = len(row), {5: 2, 9: 3, 12: 3}[kind]
    places = {(hashed >> 32) * kind * count >> 32 for hashed in row}
    if kind == 9:
        width = (9 * count - 1).bit_length()
        places = {hashed >> (64 - width) for hashed in row}
    head = {5: 0, 9: 1 << 14, 12: 1 << 15}[kind] | count << 1 | 1
    bits = [head >> i & 1 for i in range(16)]
    before = -1
    for place in sorted(places):
        gap = place - before - 1
        bits += [0] * (gap >> shift) + [1, *(gap >> i & 1 for i in range(shift))]
        before = place
    bits += [0] * (-len(bits) % 8)
    return bytes(sum(bit << i for i, bit in enumerate(bits[n : n + 8])) for n in range(0, len(bits), 8))


@given(two_rows(), st.sampled_from(FORMER_KINDS))
def test_duplicates_are_never_ruled_out_by_sets_of_former_versions(
    rows: tuple[list[int], list[int]], kind: int
) -> None:
    one, other = rows
    asked = asked_of([one])
    place = np.zeros(1, np.int64)
    found = may_be_alike(asked, place, place, PackedSets.of([former_set_of(other, kind)]))
    if similarity(one, other) >= _RULE.setting.threshold:
        assert found[0]


@pytest.mark.parametrize("kind", FORMER_KINDS)
def test_sets_of_former_versions_rule_pairs_out(kind: int) -> None:
    """Beside each other: each kind has its own bitmap of the asked row."""
    rng = np.random.default_rng(2)
    one, other = (sorted(rng.integers(0, 2**64, 100, np.uint64).tolist()) for _ in range(2))
    asked = asked_of([one])
    place = np.zeros(4, np.int64)
    sets = PackedSets.of([former_set_of(other, kind), former_set_of(one, kind), *sets_of([other, one])])
    assert may_be_alike(asked, place, np.arange(4), sets).tolist() == [False, True, False, True]


def test_short_rows_with_a_phrase_of_a_long_one_are_ruled_out() -> None:
    """The many features of a long text have most of few places."""
    rng = np.random.default_rng(1)
    left = []
    for number in range(300):
        count = 86 + number // 3  # from the most places a feature to the fewest
        one, other = (rng.integers(0, 2**64, size, np.uint64).tolist() for size in (9 * count, count))
        phrase = 35 * count // 100
        left.append(may(one, other[phrase:] + one[:phrase]))
    assert sum(left) < 3


def test_a_set_takes_less_than_six_bits_a_feature() -> None:
    row = np.random.default_rng(1).integers(0, 2**64, 1000, np.uint64).tolist()
    (packed,) = sets_of([row])
    assert packed is not None
    assert len(packed) < ceil(1000 * 5.9 / 8) + 2


def test_which_rows_have_a_set() -> None:
    """Not those without a sketch, without features or with too many; that of a short row is its size."""
    rows = [[1, 2, 3]] * 3 + [list(range(MOST_FEATURES + 1)), []]
    details = details_of([False, True, False, False, False])
    found = feature_sets(features_of(rows), details, np.array([1, 1, 0, 1, 1]), of_grams=True)
    assert [each and len(each) for each in found] == [3, 2, None, None, None]


@given(two_rows(), st.tuples(st.booleans(), st.booleans()))
@example(([1], [*range(100)]), (True, True))
@example(([*range(100)], [1]), (False, True))
def test_a_short_row_is_ruled_out_by_its_size_unless_the_other_one_is_short(
    rows: tuple[list[int], list[int]], are_short: tuple[bool, bool]
) -> None:
    one, other = rows
    assume(other)
    found = may(one, other, are_short=are_short)
    if all(are_short):
        assert found
    elif are_short[1]:
        assert _RULE.measure is not None
        best = _RULE.measure.similarity(min(len(one), len(other)), len(one), len(other))
        assert found == (best >= _RULE.setting.threshold)
    else:
        assert found == may(one, other)


def test_a_set_of_other_features_than_are_compared_rules_nothing_out() -> None:
    """A scan with a measure of words leaves the sets of 3-grams of unchanged rows as they are."""
    asked = asked_of([[1 << 40, 2 << 40, 3 << 40]])
    place, unlike = np.zeros(1, np.int64), [[n << 50 for n in range(1, 40)]]
    assert not may_be_alike(asked, place, place, PackedSets.of(sets_of(unlike)))[0]
    assert may_be_alike(asked, place, place, PackedSets.of(sets_of(unlike, of_grams=False)))[0]


def test_a_pair_without_a_set_may_be_alike() -> None:
    asked = asked_of([[1, 2, 3]])
    sets = PackedSets.of([None, *sets_of([[5 << 61, 6 << 61, 7 << 61]])])
    assert may_be_alike(asked, np.zeros(2, np.int64), np.arange(2), sets).tolist() == [True, False]


def test_threads_rule_out_what_one_thread_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAIRS_WORTH_THREADS", 100)
    rng = np.random.default_rng(4)
    rows = [rng.choice(400, rng.integers(20, 200), replace=False) for _ in range(30)]
    hashes = [(row.astype(np.uint64) << np.uint64(55)).tolist() for row in rows]
    sets = PackedSets.of([None if i % 7 == 0 else one for i, one in enumerate(sets_of(hashes))])
    asked = asked_of(hashes[:10])
    which, candidates = (part.reshape(-1) for part in np.indices((10, 30)))
    order = rng.permutation(which.size)
    found = [may_be_alike(asked, which[order], candidates[order], sets, threads) for threads in (1, 4)]
    assert found[0].tolist() == found[1].tolist()
    assert 10 < found[0].sum() < 290


def test_a_set_is_unpacked_as_far_as_each_of_its_pairs_needs() -> None:
    """The first pair is ruled out by the first places, so the rest of the set is left for the next one."""
    rng = np.random.default_rng(5)
    rows = [sorted(rng.integers(0, 2**64, 300, np.uint64).tolist()) for _ in range(8)]
    mixed = [rows[0][: 40 * n] + rows[1][40 * n :] for n in range(8)]
    sets = PackedSets.of(sets_of([*rows, *mixed]))
    asked = asked_of([*rows, *map(sorted, mixed)])
    which, candidates = (part.reshape(-1) for part in np.indices((16, 16)))
    for order in (np.arange(which.size), rng.permutation(which.size)):
        together = may_be_alike(asked, which[order], candidates[order], sets)
        alone = [may_be_alike(asked, which[i : i + 1], candidates[i : i + 1], sets)[0] for i in order]
        assert together.tolist() == alone
    assert 16 < together.sum() < 200


@pytest.mark.parametrize("count", [1, 2, 7, 8, 85, 86, 113, 114, 455, 456, MOST_FEATURES])
def test_sets_of_any_size(count: int) -> None:
    """From the fewest places that there can be to the most; the last feature has the last place."""
    rng = np.random.default_rng(count)
    row, other = ([*rng.integers(0, 2**64, count - 1, np.uint64).tolist(), 2**64 - 1] for _ in range(2))
    assert may(row, row)
    assert count < 8 or not may(row, other)


@pytest.mark.parametrize("damaged", [b"\x05", b"\x07\x00\x80", b"\x00\x40", b"\x01\x40", b"\xff\x7f"])
def test_a_damaged_set_is_an_error(damaged: bytes) -> None:
    asked = asked_of([[1, 2, 3]])
    with pytest.raises(ValueError, match="ends early"):
        may_be_alike(asked, np.zeros(1, np.int64), np.zeros(1, np.int64), PackedSets.of([damaged]))
