"""The theorem: whatever was written, once the queue is empty all views equal those after a fresh full scan.

Each test run plays some histories drawn by lot. `make soak SOAK=60` plays them for an hour on each database
and prints the seed of every round; `make soak SEED=number` plays one round once more.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st
from sqlalchemy import NullPool, create_engine

from db_dedup.flow.text import frames
from db_dedup.jobs.scan import sketch_index
from tests.conftest import private_server
from tests.forms import stored_frames
from tests.servers import Database, Server, start_mariadb, start_mysql, start_postgresql
from tests.worker.conftest import write_in_parts
from tests.worker.history import BASES, CLOSING, OPENING, History, Place, Step, histories
from tests.worker.restarts import DURABLE_MYSQL, DURABLE_POSTGRESQL, restart_of
from tests.worker.watched import Watched, wait_for_nobody

HISTORIES = 80
BY_WORDS = 3
"""Number of a way of watching that compares sets of words."""
SOAK_SECONDS = 60 * float(os.environ.get("DB_DEDUP_TEST_SOAK_MINUTES", "0"))
SEED = os.environ.get("DB_DEDUP_TEST_SEED")
LEVELS = {
    "postgresql": ("REPEATABLE READ", "SERIALIZABLE"),
    "mariadb": ("REPEATABLE READ",),
}

if SOAK_SECONDS:  # on servers of our own alone, which can be restarted

    @pytest.fixture(scope="module")
    def postgresql_server() -> Iterator[Server]:
        yield from private_server("postgresql", partial(start_postgresql, **DURABLE_POSTGRESQL))

    @pytest.fixture(scope="module")
    def mariadb_server() -> Iterator[Server]:
        yield from private_server("mariadb", partial(start_mariadb, DURABLE_MYSQL, restarts=True))

    @pytest.fixture(scope="module")
    def mysql_server() -> Iterator[Server]:
        yield from private_server("mysql", partial(start_mysql, DURABLE_MYSQL, restarts=True))


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are enough to look for frames and to fold the index, so that the small tables here do.

    What is matched ahead is written two changes at a time.
    """
    monkeypatch.setattr(frames, "LEAST_ROWS", 4)
    monkeypatch.setattr(frames, "_COMMON_ROWS", 3)
    monkeypatch.setattr(sketch_index, "_LEAST_FOLDED", 1)
    write_in_parts(monkeypatch, 2)


@pytest.fixture
def place(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The database, whose sessions wait for no lock for long."""
    for dialect in ("postgresql", "mysql"):
        monkeypatch.setattr(f"db_dedup.dialects.{dialect}.triggers.TABLE_LOCK_SECONDS", 1)
    is_sqlite = database.name == "sqlite"
    writers = create_engine(database.url, **({} if is_sqlite else {"isolation_level": "READ COMMITTED"}))
    administrator = create_engine(database.url, poolclass=NullPool)
    wait_for_nobody(database.engine, database.name)
    wait_for_nobody(writers, database.name)
    yield Place(
        database.url,
        writers,
        administrator,
        LEVELS.get(database.name, ()),
        one_writer=is_sqlite,
        restart=restart_of(database) if SOAK_SECONDS else None,
    )
    writers.dispose()


def test_the_views_are_those_of_a_fresh_scan(database: Database, place: Place) -> None:
    played = [History(watched, place) for watched in Watched.make_all(database.engine)]
    end = time.monotonic() + SOAK_SECONDS
    while True:
        number = int(SEED) if SEED else random.SystemRandom().randrange(2**32)
        if SOAK_SECONDS:
            print(f"{database.engine.dialect.name}: SEED={number}", flush=True)  # noqa: T201 - for who soaks
        _checked(played, number)()
        if SEED or time.monotonic() > end:
            break


def _checked(played: list[History], number: int) -> Callable[[], None]:
    @seed(number)
    @settings(max_examples=HISTORIES, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(range(len(played))), histories())
    def check(way: int, steps: list[Step]) -> None:
        history = played[way]
        note(f"SEED={number}, table {history.watched.letters.name}")
        history.play(steps)
        assert history.watched.stored() == history.watched.fresh()

    return check


def test_an_abridged_group_may_do_without_a_pair_of_the_same_words(database: Database, place: Place) -> None:
    """Such a pair looks like the link of a copy, of which nothing may be missing."""
    words = BASES[0]
    bodies = [words, words[::-1], ["word0", *words[1:]], ["word3", *words[1:]]]
    inserts = [Step("insert", 0, key, (" ".join(body), "A", None)) for key, body in enumerate(bodies)]
    history = History(Watched.make(database.engine, BY_WORDS), place)
    history.play([*inserts, Step("commit", 0)])
    assert history.watched.stored() == history.watched.fresh()


def test_frames_are_left_out_in_histories(database: Database, place: Place) -> None:
    """Letters in a form: a scan measures it, and the workers keep the answer by the list of that scan."""
    letters = [f"{OPENING} {' '.join(words)} {CLOSING}" for words in BASES]
    bodies = [*letters, letters[0].replace("lamp", "lamps"), letters[1].replace("water", "waters")]
    history = History(Watched.make(database.engine, 0), place)
    before = [Step("insert", 0, key, (body, "A", None)) for key, body in enumerate(bodies)]
    after = [
        Step("body", 0, 4, letters[2].replace("noise", "noises")),
        Step("delete", 0, 3),
        Step("commit", 0),
        Step("work", 0),
    ]
    history.play([*before, Step("commit", 0), Step("scan", 0, 0, (False, None)), *after])
    assert stored_frames(history.watched.dedup).has_frames
    assert history.watched.stored() == history.watched.fresh()
    assert len(history.watched.stored()["groups"]) == 1


def test_common_grams_count_in_histories(database: Database, place: Place) -> None:
    """A scan freezes the common 3-grams also where it finds no frame: they decide which rows are candidates.

    The two rows of the end have enough in common, but by this list no hash.
    """
    framed = [
        f"{OPENING} lamp dark 岳麓小区 months nobody repairs light children 岳麓小区 {CLOSING}",
        f"{OPENING} word0 dark street months nobody 岳麓小区 light children school {CLOSING}",
    ]
    plain = ["LAMP 雨花小区 STREET 岳麓小区 NOBODY WORD1 LIGHT CHILDREN SCHOOL", *[" ".join(BASES[0])] * 3]
    before = [Step("insert", 0, key, (body, "A", None)) for key, body in enumerate([*framed, *plain])]
    after = [
        Step("insert", 0, 6, ("lamp dark street 雨花小区 nobody repairs light children school", "A", 1)),
        Step("insert", 0, 7, (" ".join([*BASES[0][:6], "雨花小区", *BASES[0][7:], *BASES[1]]), "A", None)),
        *(Step("delete", 0, key) for key in range(6)),
    ]
    history = History(Watched.make(database.engine, 0), place)
    history.play([*before, Step("commit", 0), Step("scan", 0, 0, (False, None)), *after])
    frozen = stored_frames(history.watched.dedup)
    assert frozen.common_grams.size
    assert not frozen.has_frames
    assert history.watched.stored() == history.watched.fresh()
