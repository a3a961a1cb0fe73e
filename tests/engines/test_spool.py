"""Features come back from the spool as they went in, and nothing stays in the temporary folder."""

import signal
import tempfile
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from db_dedup.errors import TemporaryFolderError
from db_dedup.flow.features.counting import Features, concatenate_features
from db_dedup.flow.matching import spool as spool_module
from db_dedup.flow.matching.pairs import BYTES_A_PAIR, Pairs, PairSpool, concatenate_pairs
from db_dedup.flow.matching.spool import (
    FeatureSpool,
    zeros,
)
from tests.engines.reference import MatchRule, brute_force, pairs_of, random_rows, table_of
from tests.flow.reference import empty_details, features_of


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


@pytest.mark.usefixtures("temporary_folder")
def test_pairs_past_the_memory_come_back_from_files() -> None:
    chance = np.random.default_rng(1)
    parts = [
        Pairs(
            chance.integers(0, 99, size, np.int32),
            chance.integers(0, 99, size, np.int32),
            chance.integers(0, 64, size, np.int16),
            chance.random(size),
            chance.integers(0, 9, size, np.uint8),
        )
        for size in (0, 5, 3, 0, 7)
    ]
    expected = concatenate_pairs(parts)
    for most in (0, 6 * BYTES_A_PAIR, 10**9):
        with PairSpool(most) as pairs:
            for part in parts:
                pairs.add(part)
            found = pairs.all_pairs()
        for column in fields(Pairs):
            assert_equal(getattr(found, column.name), getattr(expected, column.name))
    with PairSpool(0) as pairs:
        assert pairs.all_pairs().left.size == 0


@pytest.mark.usefixtures("temporary_folder")
def test_zeros_in_memory_and_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_ZEROS_AT_A_TIME", 24)
    for most in (0, 79, 80):
        found = zeros(10, np.uint64, most)
        assert_equal(found, np.zeros(10, np.uint64))
        found[3] = 7
        assert found.tolist() == [0, 0, 0, 7, 0, 0, 0, 0, 0, 0]
    assert zeros(0, np.uint64, 0).size == 0


def test_a_full_folder_is_an_error_not_the_end_of_the_process(temporary_folder: Path) -> None:
    resource: Any = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(TemporaryFolderError, match=str(temporary_folder)):
            zeros(1 << 20, np.uint64, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def assert_equal(found: NDArray[np.generic], expected: NDArray[np.generic]) -> None:
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
