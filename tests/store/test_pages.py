"""Pages end by characters as well as by rows, and long rows are asked for in small numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from db_dedup.dialects import dialect_for
from db_dedup.records import pages, read_size
from db_dedup.records.pages import cut_fetched, cut_pages
from db_dedup.records.read_size import ReadSize, length_of
from tests.dialects.tables import fill, run, source_of
from tests.servers import Database

LONG_TEXT = {"sqlite": "TEXT", "postgresql": "TEXT", "mariadb": "LONGTEXT"}
PAGE_CHARACTERS = 1_000


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pages, read_size):
        monkeypatch.setattr(module, "PAGE_CHARACTERS", PAGE_CHARACTERS)


def make(database: Database, lengths: list[int]) -> None:
    body = LONG_TEXT[database.name]
    run(database, f"CREATE TABLE petitions (id INTEGER NOT NULL PRIMARY KEY, body {body})")
    fill(
        database,
        "INSERT INTO petitions VALUES (:id, :body)",
        [{"id": i, "body": "水" * length} for i, length in enumerate(lengths)],
    )


@given(st.lists(st.integers(0, 1_500), max_size=60), st.integers(1, 20))
def test_no_page_is_over_its_characters_by_more_than_one_row(lengths: list[int], most_rows: int) -> None:
    cut = list(cut_pages(lengths, int, most_rows))
    assert [length for page in cut for length in page] == lengths
    for page in cut:
        assert 1 <= len(page) <= most_rows
        assert sum(page[:-1]) < PAGE_CHARACTERS
    for page in cut[:-1]:
        assert len(page) == most_rows or sum(page) >= PAGE_CHARACTERS


@given(st.lists(st.lists(st.integers(0, 1_500), min_size=1, max_size=9), max_size=20), st.integers(1, 20))
def test_rows_that_come_several_at_a_time_are_cut_at_the_same_places(
    fetched: list[list[int]], most_rows: int
) -> None:
    one_by_one = cut_pages([length for some in fetched for length in some], int, most_rows)
    assert list(cut_fetched(((some, some) for some in fetched), most_rows)) == list(one_by_one)


def test_a_row_is_not_read_before_its_page_is_wanted() -> None:
    read: list[int] = []

    def rows() -> Iterator[int]:
        for length in (600, 600, 600):
            read.append(length)
            yield length

    assert next(cut_pages(rows(), int, 10)) == [600, 600]
    assert len(read) == 2


def test_long_rows_are_asked_for_in_small_numbers() -> None:
    size = ReadSize()
    first = size.rows
    size.note(first, 10 * first)
    assert size.rows == 100  # of 10 characters in a page of 1,000
    size.note(100, 400 * 100)
    assert size.rows == 2
    size.note(2, 1_000_000)
    assert size.rows == 1
    size.note(1, 1)
    assert 1 < size.rows < 10  # one short row does not make all others short
    size.note(0, 0)
    for _ in range(20):
        size.note(1, 0)
    assert size.rows == 1_000


def test_rows_within_so_many_characters() -> None:
    size = ReadSize()
    unseen = size.rows_within(10)
    assert 1 < unseen < 1_000
    size.note(4, 40)
    assert size.rows_within(1_000) == 100
    assert size.rows_within(5) == 1
    size.note(0, 0)
    assert size.rows_within(1_000) == 100


LENGTHS = [3] * 90 + [400] * 20 + [5_000] * 3 + [3] * 30
"""Short rows, then long ones; three are longer than a page."""


def test_every_way_of_reading_cuts_long_rows(database: Database) -> None:
    make(database, LENGTHS)
    source = source_of(database)
    dialect = dialect_for(database.engine)
    with dialect.read_snapshot(database.engine) as connection:
        streamed = list(source.read_pages(connection))
    by_key = list(source.read_keyset_pages(lambda: dialect.read_snapshot(database.engine)))
    for found in (streamed, by_key):
        assert sorted(length_of(row) for page in found for row in page) == sorted(LENGTHS)
        assert len({row.row_key for page in found for row in page}) == len(LENGTHS)
        for page in found:
            assert sum(map(length_of, page[:-1])) < PAGE_CHARACTERS


def test_keys_are_asked_for_by_the_length_of_their_rows(database: Database) -> None:
    make(database, [400] * 300)
    source = source_of(database)
    statements: list[str] = []
    keys = [str(i) for i in range(300)]
    with database.engine.connect() as connection:
        event.listen(connection, "before_execute", lambda *arguments: statements.append(str(arguments[1])))
        assert len(list(source.read_rows(connection, keys))) == 300
        assert len(statements) > 300 // (PAGE_CHARACTERS // 400 + 1) // 2
        assert [len(batch) for batch in source.batches(range(5))] == [2, 2, 1]
