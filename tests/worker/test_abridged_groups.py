"""Abridged groups that lose, change and get rows, a batch at a time: they equal a fresh scan's after each.

The texts are stretches of one long row of words. Those that begin near each other are duplicates, so the rows
form chains, of which a group falls apart when the rows between two of its parts leave it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert

from db_dedup import Deduplicator
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.records import PairLabel
from tests.servers import Database
from tests.worker.keys import PLAIN_KEYS
from tests.worker.watched import Watched

EXAMPLES: Final = int(os.environ.get("DB_DEDUP_TEST_EXAMPLES", "25"))
ROWS: Final = 10
PLACES: Final = 36
LENGTH: Final = 14
WORDS: Final = [f"{a}{b}{c}" for a in "bdgk" for b in "aeiou" for c in "lmrt"]
WAYS: Final[Sequence[dict[str, Any]]] = (
    {"abridge_above": 3},
    {"radius": 11, "similarity": "word_jaccard", "threshold": 0.5, "sketches": False, "abridge_above": 2},
    {"abridge_above": 4, "within": "region"},
)


class Write(NamedTuple):
    """What becomes of a row.

    Attributes:
        place: of the first word of its text; None if the row is deleted.
    """

    key: int
    place: int | None
    region: str
    received: int


class Label(NamedTuple):
    """A pair of rows that is labelled as no duplicates; or their label is taken back."""

    a: int
    b: int
    rejects: bool


def places(near: int) -> st.SearchStrategy[int | None]:
    """Places of texts, most of them near one place, so that many rows are in one group."""
    around = st.integers(max(0, near - 4), min(PLACES - 1, near + 8))
    return st.one_of(st.none(), around, around, st.integers(0, PLACES - 1))


writes = st.builds(
    Write,
    st.integers(0, ROWS - 1),
    places(12),
    st.sampled_from("AAAB"),
    st.integers(0, 3),
)
labels = st.builds(Label, st.integers(0, ROWS - 1), st.integers(0, ROWS - 1), st.booleans())
batches = st.lists(st.lists(writes, min_size=1, max_size=3) | st.lists(labels, max_size=1), max_size=9)
first_rows = st.lists(st.integers(6, 18), min_size=ROWS, max_size=ROWS)


def text_at(place: int) -> str:
    return " ".join(WORDS[(place + i) % len(WORDS)] for i in range(LENGTH))


def write_rows(watched: Watched, rows: Sequence[Write]) -> None:
    """Write these rows in one transaction."""
    letters = watched.letters
    with watched.dedup.database.engine.begin() as connection:
        for row in rows:
            connection.execute(delete(letters).where(letters.c.id == row.key))
            if row.place is not None:
                values = {"body": text_at(row.place), "region": row.region, "received": row.received}
                connection.execute(insert(letters).values(id=row.key, **values))


def label_rows(watched: Watched, label: Label) -> None:
    """Label two rows, if both are there with different texts."""
    keys = [watched.row_key(number) for number in (label.a, label.b)]
    if None in keys or keys[0] == keys[1]:
        return
    a, b = (str(key) for key in keys)
    given = Deduplicator(watched.dedup.database, watched.letters.name).labels()
    if label.rejects:
        given.give([PairLabel(a, b, is_duplicate=False)])
    else:
        given.withdraw(a, b)


def drain(worker: TableWorker) -> None:
    ChangeWorker([worker]).run(threading.Event(), drain=True)


def test_the_answer_is_that_of_a_fresh_scan_after_each_batch(database: Database) -> None:
    tables = [
        Watched.make_with(database.engine, f"chains_{number}", PLAIN_KEYS[0], way)
        for number, way in enumerate(WAYS)
    ]
    workers = [watched.dedup.worker() for watched in tables]
    for worker in workers:
        worker._choice.may_prefer_scan = False

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(range(len(WAYS))), first_rows, batches)
    def check(way: int, first: list[int], steps: list[list[Write] | list[Label]]) -> None:
        watched, worker = tables[way], workers[way]
        watched.empty()
        write_rows(watched, [Write(key, place, "A", key % 5) for key, place in enumerate(first)])
        drain(worker)
        for step in steps:
            for label in step:
                if isinstance(label, Label):
                    label_rows(watched, label)
            write_rows(watched, [row for row in step if isinstance(row, Write)])
            drain(worker)
            assert watched.stored() == watched.fresh()

    check()


def test_a_label_on_two_rows_that_are_not_similar_makes_their_group_loose(database: Database) -> None:
    """One of them leaves and comes back. It is in no pair with the other, so that no search finds it."""
    watched = Watched.make_with(database.engine, "chains", PLAIN_KEYS[0], WAYS[0])
    worker = watched.dedup.worker()
    worker._choice.may_prefer_scan = False
    write_rows(watched, [Write(key, place, "A", key) for key, place in enumerate((10, 9, 5, 11, 8, 15))])
    drain(worker)
    are_loose = [watched.stored()["groups"][0][3]]
    label_rows(watched, Label(2, 5, rejects=True))
    for place in (30, 15):
        write_rows(watched, [Write(5, place, "A", 5)])
        drain(worker)
        assert watched.stored() == watched.fresh()
        are_loose.append(watched.stored()["groups"][0][3])
    assert are_loose == [False, False, True]


def test_a_part_that_splits_off_keeps_its_stored_pairs(database: Database) -> None:
    """They are found again by the searches that show that it has split off, and are not written twice."""
    watched = Watched.make_with(database.engine, "chains", PLAIN_KEYS[0], WAYS[0])
    worker = watched.dedup.worker()
    worker._choice.may_prefer_scan = False
    places = (0, 1, 2, 3, 4, 8, 12, 13, 14)
    write_rows(watched, [Write(key, place, "A", key) for key, place in enumerate(places)])
    drain(worker)
    assert [size for _, size, *_ in watched.stored()["groups"]] == [9]
    write_rows(watched, [Write(5, None, "A", 5)])
    drain(worker)
    assert watched.stored() == watched.fresh()
    assert sorted(size for _, size, *_ in watched.stored()["groups"]) == [3, 5]
