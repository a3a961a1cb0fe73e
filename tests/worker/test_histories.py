"""The theorem: whatever was written, once the queue is empty all views equal those after a fresh full scan.

Each test run plays some histories drawn by lot. `make soak` plays them for as many minutes as it is told, and
prints the seed of every round; DB_DEDUP_TEST_SEED plays one round once more.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from tests.servers import Database
from tests.worker.history import BASES, History, Step, histories
from tests.worker.watched import WAYS, Watched, wait_for_nobody

HISTORIES = 200
SOAK_SECONDS = 60 * float(os.environ.get("DB_DEDUP_TEST_SOAK_MINUTES", "0"))
SEED = os.environ.get("DB_DEDUP_TEST_SEED")


@pytest.fixture
def played(database: Database) -> Iterator[list[History]]:
    """One for each way of watching, ready to be played."""
    is_sqlite = database.name == "sqlite"
    writers = create_engine(database.url, **({} if is_sqlite else {"isolation_level": "READ COMMITTED"}))
    wait_for_nobody(database.engine, database.name)
    watched = [Watched.make(database.engine, number) for number in range(len(WAYS))]
    yield [History(one, writers, one_writer=is_sqlite) for one in watched]
    writers.dispose()


def test_the_views_are_those_of_a_fresh_scan(database: Database, played: list[History]) -> None:
    end = time.monotonic() + SOAK_SECONDS
    while True:
        number = int(SEED) if SEED else random.SystemRandom().randrange(2**32)
        if SOAK_SECONDS:
            print(f"{database.name}: DB_DEDUP_TEST_SEED={number}", flush=True)  # noqa: T201 - for who soaks
        _checked(played, number)()
        if time.monotonic() > end:
            break


def _checked(played: list[History], number: int) -> Callable[[], None]:
    @seed(number)
    @settings(max_examples=HISTORIES, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(range(len(played))), histories())
    def check(way: int, steps: list[Step]) -> None:
        history = played[way]
        history.play(steps)
        assert history.watched.stored() == history.watched.fresh()

    return check


def test_an_abridged_group_may_do_without_a_pair_of_the_same_words(played: list[History]) -> None:
    """Such a pair looks like the link of a copy, of which nothing may be missing."""
    words = BASES[0]
    bodies = [words, words[::-1], ["word0", *words[1:]], ["word3", *words[1:]]]
    inserts = [Step("insert", 0, key, (" ".join(body), "A", None)) for key, body in enumerate(bodies)]
    history = next(one for one in played if one.watched.settings.rule.similarity == "word_jaccard")
    history.play([*inserts, Step("commit", 0)])
    assert history.watched.stored() == history.watched.fresh()
