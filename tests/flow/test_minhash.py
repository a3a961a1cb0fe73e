"""MinHash bands: how likely two sets have one in common, and that what is stored stays valid."""

import numpy as np
import pytest
from numpy.typing import NDArray

from db_dedup.flow.candidates.minhash import BANDS, MINIMA_A_BAND, find_bands

TRIALS = 600


def pairs_of_sets(jaccard: float, size: int = 200) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Sets 2i and 2i + 1 have this similarity."""
    chance = np.random.default_rng(5)
    shared = round(2 * size * jaccard / (1 + jaccard))
    sets = []
    for _ in range(TRIALS):
        features = chance.integers(2, 2**64, 2 * size - shared, np.uint64)
        sets += [np.sort(features[:size]), np.sort(features[size - shared :])]
    return np.arange(0, (2 * TRIALS + 1) * size, size), np.concatenate(sets)


@pytest.mark.parametrize("jaccard", [0.2, 0.3, 0.4, 0.5, 0.7])
def test_a_band_is_shared_as_often_as_its_formula_says(jaccard: float) -> None:
    bands = find_bands(*pairs_of_sets(jaccard))
    shared = float(np.mean((bands[::2] == bands[1::2]).any(axis=1)))
    expected = 1 - (1 - jaccard**MINIMA_A_BAND) ** BANDS
    # Four standard deviations.
    assert abs(shared - expected) < 4 * np.sqrt(expected * (1 - expected) / TRIALS) + 0.01


def test_equal_sets_have_equal_bands_and_each_band_is_its_own() -> None:
    starts, hashes = pairs_of_sets(1.0)
    bands = find_bands(starts, hashes)
    assert bands.shape == (2 * TRIALS, BANDS)
    assert (bands[::2] == bands[1::2]).all()
    assert np.unique(bands[::2]).size == TRIALS * BANDS


def test_the_order_of_features_does_not_matter() -> None:
    starts, hashes = pairs_of_sets(0.5)
    backwards = hashes.reshape(2 * TRIALS, -1)[:, ::-1].ravel()
    assert (find_bands(starts, hashes) == find_bands(starts, backwards)).all()


def test_bands_never_change() -> None:
    """What is stored was computed by them."""
    bands = find_bands(np.array([0, 3]), np.array([7, 2**63, 2**64 - 1], np.uint64))
    assert bands[0, [0, 1, BANDS - 1]].tolist() == GOLDEN


GOLDEN = [3891287406106677687, 12566577326405639892, 17943187282447886551]
