"""Features stay in memory within their budget, and those that were used last are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from db_dedup import Text
from db_dedup.config import watched_table
from db_dedup.engines.embedded.feature_cache import FeatureCache
from db_dedup.flow.candidates.set_pieces import pack_sets
from db_dedup.flow.matching.ragged import Ragged
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter

WATCHED = watched_table("letters", {"columns": {"body": Text()}})
TEXTS = [f"letter {i} about the lamp number {i * 7919} at the gate of house {i * 31}" for i in range(40)]


@pytest.fixture(scope="module")
def done() -> FingerprintedRows:
    return Fingerprinter(WATCHED.recipe).fingerprint([(text,) for text in TEXTS])


def grams(cache: FeatureCache, digest: bytes) -> list[int]:
    place = cache.place(digest)
    assert place is not None
    features = cache.features()
    found: list[int] = features.hashes[features.starts[place] : features.starts[place + 1]].tolist()
    return found


def test_each_digest_is_kept_once(done: FingerprintedRows) -> None:
    cache = FeatureCache(WATCHED)
    for _ in range(2):
        cache.add([None] * len(TEXTS), done)
    assert len(cache) == len(set(done.digests)) == len(TEXTS)


def test_the_rows_used_last_are_kept_with_their_features(done: FingerprintedRows) -> None:
    within = [f"region {i % 3}" for i in range(len(TEXTS))]
    whole = FeatureCache(WATCHED)
    whole.add(within, done)
    cache = FeatureCache(WATCHED)
    cache.budget = whole.bytes_used
    cache.add(within, done)
    cache.trim()
    used = done.digests[30:35]
    cache.places(used)
    cache.budget -= 1
    cache.trim(done.digests[20:22])
    assert cache.bytes_used <= cache.budget // 2
    kept = [digest for digest in done.digests if digest in cache]
    assert {*used, *done.digests[20:22]} <= set(kept)
    assert len(kept) < len(TEXTS)
    for digest in kept:
        assert grams(cache, digest) == grams(whole, digest)
    cache.add(within, done)
    assert (cache.places(used) >= 0).all()
    agree = [cache.within(int(place)) for place in cache.places(done.digests)]
    assert len(set(agree)) == 3
    assert all(len({agree[i] for i in range(start, len(TEXTS), 3)}) == 1 for start in range(3))


def test_sets_of_features_count_towards_the_budget(done: FingerprintedRows) -> None:
    cache = FeatureCache(WATCHED)
    cache.add([None] * len(TEXTS), done)
    cache.budget = cache.bytes_used
    cache.trim()
    assert len(cache) == len(TEXTS)
    sets = cache.index.sets
    sets.wanted(1, np.arange(1))
    sets.add(1, {part.piece: part.packed for part in pack_sets(np.arange(10), [bytes(100)] * 10)})
    cache.trim()
    assert cache.bytes_used + sets.bytes_used <= cache.budget


def test_a_budget_of_nothing_keeps_only_what_is_named(done: FingerprintedRows) -> None:
    cache = FeatureCache(WATCHED, 0)
    cache.add([None] * len(TEXTS), done)
    cache.trim(done.digests[:2])
    assert [digest in cache for digest in done.digests] == [True, True, *[False] * (len(TEXTS) - 2)]
    assert np.array_equal(cache.places(done.digests[:2]), [0, 1])


@pytest.mark.parametrize("trims", [False, True])
def test_memory_that_runs_out_leaves_no_digest_without_its_features(
    done: FingerprintedRows, monkeypatch: pytest.MonkeyPatch, trims: bool
) -> None:
    """The worker goes on with smaller batches then."""
    cache = FeatureCache(WATCHED, 0)
    if trims:
        cache.add([None] * len(TEXTS), done)
    original, calls = Ragged.add, 0

    def add(self: Ragged, counts: NDArray[np.int64], values: Sequence[NDArray[Any]]) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise MemoryError
        original(self, counts, values)

    def act() -> None:
        if trims:
            cache.trim(done.digests[:2])
        else:
            cache.add([None] * len(TEXTS), done)

    with monkeypatch.context() as patch:
        patch.setattr(Ragged, "add", add)
        with pytest.raises(MemoryError):
            act()
    assert not any(digest in cache for digest in done.digests)
    cache.add([None] * len(TEXTS), done)
    other = FeatureCache(WATCHED)
    other.add([None] * len(TEXTS), done)
    assert all(grams(cache, digest) == grams(other, digest) for digest in done.digests)
