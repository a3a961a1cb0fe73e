"""The theorem with people in it: whatever was written and said, all views equal those after a full scan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, delete

from db_dedup.jobs.rehearsal import rehearse
from db_dedup.records import PairLabel
from tests.servers import Database
from tests.worker import history, watched
from tests.worker.history import KEYS, History, Step
from tests.worker.watched import WAYS, Answer, Watched

HISTORIES = int(os.environ.get("DB_DEDUP_TEST_LABEL_HISTORIES", "60"))

_key = st.sampled_from(KEYS)
sayings = st.builds(
    Step,
    st.just("say"),
    st.integers(0, 1),
    _key,
    st.tuples(_key, st.sampled_from([True, False, False, None])),
)
rescans = st.just(Step("rescan", 0))
histories = st.tuples(
    st.lists(st.one_of(history.steps, history.steps, sayings, sayings), min_size=10, max_size=40),
    st.lists(st.one_of(rescans, history.rare), max_size=1),
    st.integers(0, 40),
).map(lambda parts: [*parts[0][: parts[2]], *parts[1], *parts[0][parts[2] :]])


@dataclass
class Judged(Watched):
    """A watched table whose pairs people judge."""

    def empty(self) -> None:
        super().empty()
        with self.dedup.database.engine.begin() as connection:
            connection.execute(delete(self.dedup.database.tables.verdict))

    def fresh(self) -> Answer:
        with self.dedup.database.engine.connect() as connection:
            stored = self.dedup._access.require_stored(connection)
            context = self.dedup._access.context(connection, stored.watched)
        return watched._answer(rehearse(context).scanned)


class JudgedHistory(History):
    """As `History`, with people who reject pairs, and change their minds."""

    def _do(self, step: Step) -> None:
        if step.what not in ("say", "rescan"):
            super()._do(step)
        elif self._one_writer and any(self._connections):
            return
        elif step.what == "rescan":
            self.watched.dedup.scan(afresh=True)
        else:
            self._say(step)

    def _say(self, step: Step) -> None:
        other, said = step.value
        a, b = (self._row_key(key) for key in (step.key, other))
        verdicts = self.watched.dedup.verdicts()
        if said is None:
            verdicts.withdraw(a, b)
        else:
            verdicts.give([PairLabel(a, b, said)])

    def _row_key(self, key: int) -> str:
        return watched._key_text(list(self.watched.key(key).values()))


@pytest.fixture
def played(database: Database) -> Iterator[list[tuple[Judged, JudgedHistory]]]:
    """Every way of watching, ready to be played on."""
    level: dict[str, Any] = {} if database.name == "sqlite" else {"isolation_level": "READ COMMITTED"}
    writers = create_engine(database.url, **level)
    watched.wait_for_nobody(database.engine, database.name)
    made = (Judged.make(database.engine, number) for number in range(len(WAYS)))
    judged = [Judged(**vars(watched_table)) for watched_table in made]
    yield [(w, JudgedHistory(w, writers, database.name == "sqlite")) for w in judged]
    writers.dispose()


def test_the_views_are_those_of_a_fresh_scan(played: list[tuple[Judged, JudgedHistory]]) -> None:
    @given(st.sampled_from(played), histories)
    @settings(
        max_examples=HISTORIES,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )
    def check(chosen: tuple[Judged, JudgedHistory], steps: list[Step]) -> None:
        judged, said = chosen
        said.play(steps)
        assert judged.stored() == judged.fresh()

    check()
