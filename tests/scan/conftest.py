"""A watched table of sample petitions."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Engine

from db_dedup import Deduplicator, Text
from db_dedup.cli.demo import fill
from db_dedup.records.frames import FrameList
from db_dedup.sample import Sample, generate_petitions
from db_dedup.store.frames import serving_frames
from db_dedup.store.watched_tables import find_table
from tests.servers import Database

COLUMNS = {"title": Text(), "content": Text()}


@pytest.fixture(scope="session")
def sample() -> Sample:
    return generate_petitions(400, seed=7, duplicate_share=0.4)


def watch(engine: Engine, **options: Any) -> Deduplicator:
    """Our tables made, nothing scanned yet."""
    dedup = Deduplicator(engine, "petitions", COLUMNS, order="created_at", **options)
    dedup.upgrade()
    return dedup


def fill_database(engine: Engine, sample: Sample) -> None:
    with engine.begin() as connection:
        fill(connection, sample)


def stored_frames(dedup: Deduplicator) -> FrameList:
    """The list of the recipe that serves."""
    database = dedup.database
    with database.engine.connect() as connection:
        stored = find_table(connection, database.tables, dedup.name)
        assert stored is not None
        return serving_frames(connection, database.tables, stored)


def answer(dedup: Deduplicator) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Everything the views say but when it was found."""
    groups = sorted(dedup.groups(), key=lambda g: g.group_id)
    members = [(g.group_id, sorted(dedup.members(g.group_id))) for g in groups]
    return sorted(dedup.pairs(), key=lambda p: (p.key_a, p.key_b)), groups, members


@pytest.fixture
def scanned(database: Database, sample: Sample) -> Iterator[Deduplicator]:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    yield dedup
    database.engine.dispose()
