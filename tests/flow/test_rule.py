"""The two forms of the rule decide alike: the kernels, and `decide` on pairs that are measured already."""

from dataclasses import replace
from itertools import combinations, product
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from db_dedup.flow.candidates.sketches import shares_enough
from db_dedup.flow.compare.edit_distance import edit_similarities
from db_dedup.flow.compare.kernels import long_similarities, similarities
from db_dedup.flow.compare.long_grams import LONG, VERY_LONG
from db_dedup.flow.compare.measures import MEASURES, NO_SIMILARITY
from db_dedup.flow.compare.numbers import which_have_other_numbers
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import MeasuredPairs, Rule
from db_dedup.flow.matching import _pairs
from db_dedup.flow.matching._pairs import are_duplicates
from db_dedup.flow.matching.match import pairs_between
from db_dedup.flow.matching.rejections import pack
from db_dedup.records.calibration import PairSetting
from db_dedup.records.kinds import ExcludedKind
from tests.engines.reference import random_rows, table_of
from tests.thorough import quick_first

SETTINGS = [
    *(
        PairSetting(radius, True, similarity, threshold, short_threshold)
        for radius, similarity, threshold, short_threshold in product(
            (0, 5, 11), (NO_SIMILARITY, *MEASURES), (0.0, 0.4, 0.8), (0.0, 0.75)
        )
    ),
    *(
        PairSetting(11, True, similarity, threshold, long_grams=True)
        for similarity, threshold in product((NO_SIMILARITY, "char_jaccard", "char_overlap"), (0.0, 0.4, 0.8))
    ),
]
EXCLUDED: tuple[tuple[ExcludedKind, ...], ...] = (("edited",), ("contained", "partial"), ("other_place",))
SETTINGS += [PairSetting(11, True, *each) for each in product(MEASURES, (0.0,), (0.0,), (False,), EXCLUDED)]


def table(seed: int, count: int = 40) -> ComparedRows:
    rows = random_rows(Random(seed), count, with_sketches=seed % 2 == 1, with_symbols=True)
    return table_of(rows)


_UNMEASURED = PairSetting(0, False, NO_SIMILARITY, 0.0)


def measured(
    rows: ComparedRows,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    setting: PairSetting = _UNMEASURED,
) -> MeasuredPairs:
    features, places = rows.features, rows.places.astype(np.int32)
    scores = {
        name: similarities(
            name, features.starts, features.hashes, features.weights, places[left], places[right]
        )
        for name in MEASURES
    }
    shares = [
        shares_enough(rows.sketches, int(rows.sketch_places[a]), int(rows.sketch_places[b]))
        for a, b in zip(left, right, strict=True)
    ]
    distances = np.bitwise_count(rows.fingerprints[left] ^ rows.fingerprints[right]).astype(np.int16)
    details = rows.details
    edits = edit_similarities(details.starts, details.values, places[left], places[right])
    by_long_grams = long_similarities(details, places[left], places[right])
    kinds = {name: Rule(replace(setting, similarity=name)).kinds(rows, left, right) for name in MEASURES}
    numbers = which_have_other_numbers(details.starts, details.values, places[left], places[right])
    return MeasuredPairs(distances, np.array(shares, np.bool_), scores, edits, by_long_grams, kinds, numbers)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", quick_first([0, 1]))
def test_both_forms_decide_alike(setting: PairSetting, seed: int) -> None:
    rows, rule = table(seed), Rule(setting)
    left, right = np.array(list(combinations(range(40), 2)), np.int32).T
    pairs = measured(rows, left, right, setting)
    confirmed, scores, kinds = rule.confirm(rows, left, right)
    agrees = rows.within[left] == rows.within[right]
    found = are_duplicates(left, right, rows.arrays(slice(None), rows.rejected), rule.numbers)
    assert found.tolist() == (rule.decide(pairs) & agrees).tolist()
    if rule.measure is not None:
        alike = confirmed & agrees
        assert scores[alike].tolist() == rule.similarities(pairs)[alike].tolist()
        assert kinds[alike].tolist() == rule.kinds(rows, left, right)[alike].tolist()


def test_long_grams_count_where_the_setting_says_so_and_the_rows_have_many() -> None:
    rows = table(0)
    left, right = np.array(list(combinations(range(40), 2)), np.int32).T
    pairs, without = measured(rows, left, right), PairSetting(11, True, "char_overlap", 0.1)
    with_them = replace(without, long_grams=True)
    plain, both = pairs.similarity(without), pairs.similarity(with_them)
    sizes = rows.details.counts[1::3][rows.places]
    smaller, larger = np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])
    count = (smaller > 0) & ((smaller >= LONG) | (larger >= VERY_LONG))
    assert np.any(both[count] < plain[count])
    assert np.any((smaller > 0) & ~count & (plain > 0))
    assert np.all(both[~count] == plain[~count])
    assert Rule(without).decide(pairs).sum() > Rule(with_them).decide(pairs).sum() > 0


def test_pairs_between_are_all_that_the_rule_decides() -> None:
    rows, rule = table(3), Rule(PairSetting(7, True, "word_jaccard", 0.4))
    lefts, rights = np.arange(15, dtype=np.int32), np.arange(15, 40, dtype=np.int32)
    left, right = np.array(list(product(lefts, rights)), np.int32).T
    wanted = rule.decide(measured(rows, left, right)) & (rows.within[left] == rows.within[right])
    found = pairs_between(rows, rule, lefts, rights)
    assert np.any(wanted)
    assert set(zip(found.left, found.right, strict=True)) == set(
        zip(left[wanted], right[wanted], strict=True)
    )


def test_more_pairs_than_there_was_room_for_at_first() -> None:
    zeros = np.zeros(60, np.int32)
    rows = replace(table(3, 60), fingerprints=zeros.astype(np.uint64), within=zeros)
    rule = Rule(PairSetting(0, True, NO_SIMILARITY, 0.0))
    left, right = np.array(list(combinations(range(60), 2)), np.int32).T
    of_all = rows.arrays(slice(None), np.empty(0, np.int64)), rule.numbers
    found = _pairs.pairs_within_groups(0, 60, np.arange(60, dtype=np.int32), zeros, *of_all)
    assert found[0].tolist() == left.tolist()
    assert found[1].tolist() == right.tolist()
    assert set(found[2].tolist()) == {0}


def test_what_people_rejected_is_no_duplicate() -> None:
    rows, rule = table(3), Rule(PairSetting(11, True, NO_SIMILARITY, 0.0))
    rejected = ComparedRows(**{**vars(rows), "rejected": pack(np.array([[2, 5]]))})
    left, right = np.array([5, 2, 1], np.int32), np.array([2, 5, 5], np.int32)
    same_within = (rows.within[left] == rows.within[right]).tolist()
    assert rule.confirm(rows, left, right)[0].tolist() == same_within
    assert rule.confirm(rejected, left, right)[0].tolist() == [False, False, same_within[2]]
