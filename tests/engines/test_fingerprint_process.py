"""The process that fingerprints gives what the fingerprinter gives, and never outlives its owner."""

import numpy as np
import pytest

from db_dedup.config import watched_table
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcess
from db_dedup.errors import DedupError
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.sample import generate_petitions

WATCHED = watched_table(
    "petitions", {"columns": {"title": 2, "content": 1, "region": {"kind": "value"}}, "within": "region"}
)


def test_it_answers_as_the_fingerprinter_does() -> None:
    petitions = generate_petitions(300, seed=3).petitions
    pages = [
        [(p.title, p.content, p.region or "") for p in petitions[first : first + 150]] for first in (0, 150)
    ]
    here = Fingerprinter(WATCHED.recipe)
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        for page in pages:
            within = [row[2] for row in page]
            wanted, found = here.fingerprint(page, within), elsewhere.fingerprint(page, within)
            assert found.digests == wanted.digests
            for name in ("fingerprints", "has_fingerprint"):
                assert np.array_equal(getattr(found, name), getattr(wanted, name))
            for name in ("starts", "hashes", "weights"):
                assert np.array_equal(getattr(found.features, name), getattr(wanted.features, name))


def test_its_end_is_an_error_that_says_so() -> None:
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        elsewhere._process.kill()
        with pytest.raises(DedupError, match="ended with code -9"):
            elsewhere.fingerprint([("a", "b", "c")] * 20_000)


def test_it_ends_with_its_owner() -> None:
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        process = elsewhere._process
        assert process.poll() is None
    assert process.poll() is not None
