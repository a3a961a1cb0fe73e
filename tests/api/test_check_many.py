"""A batch of checks answers as one check after the other, by a few statements."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from db_dedup import Database, Deduplicator, PairLabel, Text, Value, WatchedTable
from db_dedup.cli.demo import fill
from db_dedup.sample import Sample
from tests.thorough import quick_first

SETTINGS: list[dict[str, Any]] = [
    {},
    {"preset": "strict", "radius": 6},
    {"within": "region", "similarity": "cosine", "threshold": 0.5},
]
TABLES = [f"petitions_{place}" for place in range(len(SETTINGS))]
TITLES = ("", "投诉", "关于小区停水的投诉")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, sample: Sample) -> Iterator[list[Deduplicator]]:
    """The same petitions scanned by different settings; one of the pairs is rejected."""
    path = tmp_path_factory.mktemp("many") / "petitions.db"
    with closing(Database(f"sqlite:///{path}", create=True)) as database:
        database.upgrade()
        with database.engine.begin() as connection:
            fill(connection, sample)
        found = []
        for name, options in zip(TABLES, SETTINGS, strict=True):
            columns: dict[str, Text | Value] = {"title": Text(weight=2), "content": Text(), "region": Value()}
            watched = WatchedTable(
                name=name, table="petitions", columns=columns, order="created_at", **options
            )
            dedup = Deduplicator(database, watched)
            dedup.scan()
            pair = next(pair for pair in dedup.pairs() if pair.distance)
            assert dedup.labels().give([PairLabel(pair.key_a, pair.key_b, is_duplicate=False)]).kept
            found.append(dedup)
        yield found


def record_of(sample: Sample, number: int, cut: int, title: str | None) -> dict[str, object]:
    """A stored petition, perhaps cut short or under another title."""
    petition = sample.petitions[number % len(sample.petitions)]
    content = petition.content[: len(petition.content) - cut]
    return {
        "title": petition.title if title is None else title,
        "content": content,
        "region": petition.region,
    }


records = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from([0, 0, 3, 30, 10_000]), st.sampled_from([None, *TITLES])),
    max_size=12,
)


@pytest.mark.parametrize("place", quick_first(range(len(SETTINGS))))
@settings(max_examples=25)
@given(chosen=records)
def test_a_batch_answers_as_single_checks(
    tables: list[Deduplicator], sample: Sample, place: int, chosen: list[tuple[int, int, str | None]]
) -> None:
    dedup = tables[place]
    asked = [record_of(sample, *one) for one in chosen]
    assert dedup.check_many(asked) == [dedup.check_in_full(record) for record in asked]


@pytest.mark.parametrize("place", quick_first(range(len(SETTINGS))))
def test_every_stored_row_finds_what_the_scan_pairs_it_with(
    tables: list[Deduplicator], sample: Sample, place: int
) -> None:
    """More records than are looked up at once, so that the rounds are put together again."""
    dedup = tables[place]
    partners: dict[str, set[str]] = {str(petition.id): set() for petition in sample.petitions}
    for pair in dedup.pairs(expand=True):
        partners[pair.key_a].add(pair.key_b)
        partners[pair.key_b].add(pair.key_a)
    rejected = [{verdict.key_a, verdict.key_b} for verdict in dedup.labels().stored()]
    numbers = [number % len(sample.petitions) for number in range(3 * len(sample.petitions))]
    results = dedup.check_many(record_of(sample, number, 0, None) for number in numbers)
    assert len(results) == len(numbers) > 256
    for number, result in zip(numbers, results, strict=True):
        key = str(sample.petitions[number].id)
        found = {match.row_key for match in result.matches} - {key}
        wanted = {other for other in partners[key] if {key, other} not in rejected}
        assert found == wanted


def test_the_statements_do_not_grow_with_the_records(tables: list[Deduplicator], sample: Sample) -> None:
    """A sketch has some forty values, of which two statements take 960; all else is one statement for 256."""
    dedup = tables[0]
    one, many = (count_statements(dedup, sample, count) for count in (1, 96))
    assert many <= one + 2 * (96 * 50 // 960) + 3


def count_statements(dedup: Deduplicator, sample: Sample, count: int) -> int:
    asked = [record_of(sample, number, 3, None) for number in range(count)]
    dedup.check_many(asked[:1])
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    event.listen(dedup.database.engine, "before_cursor_execute", note)
    try:
        dedup.check_many(asked)
    finally:
        event.remove(dedup.database.engine, "before_cursor_execute", note)
    return len(statements)


def test_no_records(tables: list[Deduplicator]) -> None:
    assert tables[0].check_many([]) == []


def test_too_little_text_is_said_of_each_record(tables: list[Deduplicator]) -> None:
    results = tables[0].check_many([{"title": "", "content": ""}, {"title": "投诉"}])
    assert [result.too_little_text for result in results] == [True, True]
