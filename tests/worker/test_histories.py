"""The theorem: whatever was written, once the queue is empty all views equal those after a fresh full scan."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from tests.servers import Database
from tests.worker.history import History, Step, histories
from tests.worker.watched import WAYS, Watched, wait_for_nobody

HISTORIES = int(os.environ.get("DB_DEDUP_TEST_HISTORIES", "200"))


@pytest.fixture
def played(database: Database) -> Iterator[list[tuple[Watched, History]]]:
    """Every way of watching, ready to be played on."""
    level = {} if database.name == "sqlite" else {"isolation_level": "READ COMMITTED"}
    writers = create_engine(database.url, **level)
    wait_for_nobody(database.engine, database.name)
    watched = [Watched.make(database.engine, number) for number in range(len(WAYS))]
    yield [(w, History(w, writers, database.name == "sqlite")) for w in watched]
    writers.dispose()


def test_the_views_are_those_of_a_fresh_scan(played: list[tuple[Watched, History]]) -> None:
    @given(st.sampled_from(played), histories())
    @settings(
        max_examples=HISTORIES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )
    def check(chosen: tuple[Watched, History], steps: list[Step]) -> None:
        watched, history = chosen
        history.play(steps)
        assert watched.stored() == watched.fresh()

    check()
