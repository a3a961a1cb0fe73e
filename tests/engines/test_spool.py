"""Features come back from the spool as they went in, and nothing stays in the temporary folder."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from db_dedup.flow.features.counting import Features, concatenate_features
from db_dedup.flow.features.details import empty_details
from db_dedup.flow.matching.spool import FeatureSpool
from tests.engines.reference import MatchRule, brute_force, pairs_of, random_rows, table_of
from tests.flow.reference import features_of


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def batches_of_features() -> list[Features]:
    chance = Random(3)
    sizes = [3, 0, 1, 400]
    return [
        features_of(
            [
                {chance.getrandbits(64): chance.randrange(1, 99) for _ in range(chance.choice([0, 1, 50]))}
                for _ in range(size)
            ]
        )
        for size in sizes
    ]


@pytest.mark.parametrize("keep_weights", [True, False])
@pytest.mark.usefixtures("temporary_folder")
def test_the_spool_gives_back_what_it_took(keep_weights: bool) -> None:
    batches = batches_of_features()
    with FeatureSpool(keep_weights) as spool:
        for batch in batches:
            spool.add(batch, empty_details(batch.counts.size))
        expected, found = concatenate_features(batches), spool.all_features()
        assert_equal(found.starts, expected.starts)
        assert_equal(found.hashes, expected.hashes)
        if keep_weights:
            assert_equal(found.weights, expected.weights)


@pytest.mark.parametrize("batches", [[], [features_of([{}, {}])]])
@pytest.mark.parametrize("keep_weights", [True, False])
@pytest.mark.usefixtures("temporary_folder")
def test_an_empty_spool(batches: list[Features], keep_weights: bool) -> None:
    with FeatureSpool(keep_weights) as spool:
        for batch in batches:
            spool.add(batch, empty_details(batch.counts.size))
        found = spool.all_features()
        assert_equal(found.starts, np.zeros(1 + 2 * len(batches), np.int64))
        assert found.hashes.size == found.weights.size == 0


def test_a_failure_leaves_no_file_either(temporary_folder: Path) -> None:
    with pytest.raises(AttributeError), FeatureSpool(keep_weights=True) as spool:
        spool.add(None, empty_details(0))  # type: ignore[arg-type]
    assert list(temporary_folder.iterdir()) == []


@pytest.mark.parametrize("measure", ["word_jaccard", "overlap", "cosine"])
@pytest.mark.usefixtures("temporary_folder")
def test_matching_from_the_spool(measure: str) -> None:
    rows = random_rows(Random(1), 60)
    table, rule = table_of(rows), MatchRule(7, measure, 0.4, 1000)
    with FeatureSpool(keep_weights=measure == "cosine") as spool:
        spool.add(table.features, table.details)
        found = rule.match(replace(table, features=spool.all_features()))
    assert pairs_of(found) == brute_force(rows, rule).pairs


def assert_equal(found: NDArray[np.generic], expected: NDArray[np.generic]) -> None:
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
