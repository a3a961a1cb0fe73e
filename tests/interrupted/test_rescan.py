"""A second scan segments only what may have changed its answer, and writes only what differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import event, select, text, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.config import watched_table
from db_dedup.sample import Petition, Sample
from tests.interrupted.conftest import by_settings, dump, keys_with_candidates
from tests.scan.conftest import answer
from tests.scan.reference import brute_force
from tests.servers import Database

SIGN_BIT = 1 << 63


@contextmanager
def written_to(database: Database, *names: str) -> Iterator[list[str]]:
    """The statements that write to these tables of ours, as they are run."""
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        verb = statement.split(maxsplit=1)[0].upper()
        if verb in ("INSERT", "UPDATE", "DELETE", "REPLACE") and any(name in statement for name in names):
            statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield statements
    event.remove(database.engine, "before_cursor_execute", note)


def places(database: Database) -> list[tuple[Any, ...]]:
    """Where PostgreSQL keeps each version of our rows: a row that is written is written elsewhere."""
    if database.name != "postgresql":
        return []
    with database.engine.connect() as connection:
        return [
            tuple(row)
            for name in ("fingerprint", "pair")
            for row in connection.execute(text(f"SELECT ctid::text, xmin::text FROM dedup.{name} ORDER BY ctid"))
        ]


def test_nothing_is_written_where_nothing_changed(petitions: Database) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    stored, stand = dump(dedup, "scan"), places(petitions)
    assert any(row[5] is not None and row[5] >= SIGN_BIT for row in stored["fingerprint"])
    with written_to(petitions, "dedup_fingerprint", "dedup.fingerprint", "dedup_pair", "dedup.pair") as statements:
        report = dedup.scan()
    assert not [s for s in statements if not s.startswith("DELETE")], statements
    assert dump(dedup, "scan") == stored
    assert places(petitions) == stand
    wanted = keys_with_candidates(dedup)
    assert 0 < report.segmented == len(wanted) < report.rows


def test_without_a_similarity_no_text_is_segmented_again(petitions: Database) -> None:
    dedup = Deduplicator(petitions.engine, "petitions", {"title": 1, "content": 1}, preset="strict")
    dedup.upgrade()
    assert dedup.scan().segmented == 90
    assert dedup.scan().segmented == 0
    assert dedup.scan(afresh=True).segmented == 90


def test_a_changed_row_alone_is_segmented(sqlite_petitions: Database, sample: Sample) -> None:
    dedup = Deduplicator(sqlite_petitions.engine, "petitions", {"title": 1, "content": 1}, preset="strict")
    dedup.upgrade()
    dedup.scan()
    ids = [p.id for p in sample.petitions]
    with sqlite_petitions.engine.begin() as connection:
        change_content(connection, ids[3], "这一行的内容换成了完全不同的另一段话")
    assert dedup.scan().segmented == 1
    assert dedup.verify().is_right


def change_content(connection: Any, row_id: int, content: str) -> None:
    connection.execute(
        update(petitions_table).where(petitions_table.c.id == row_id).values(content=content)
    )


def test_another_order_changes_representatives_and_no_fingerprint(petitions: Database) -> None:
    """Which row was received first is no part of its text: it is written, but nothing is segmented for it."""
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    wanted = keys_with_candidates(dedup)
    group = dedup.groups()[0]
    last = dedup.members(group.group_id)[-1]
    with petitions.engine.begin() as connection:
        connection.execute(
            update(petitions_table)
            .where(petitions_table.c.id == int(last))
            .values(created_at=datetime(1990, 1, 1))
        )
    assert dedup.scan().segmented <= len(wanted | {last, group.group_id})
    assert dedup.members(last)[0] == last
    assert dedup.verify().is_right
    assert answer(dedup)[0] == brute_force(rows_now(petitions), watched_table("petitions", {"columns": {"title": 1, "content": 1}}))


def rows_now(database: Database) -> list[Petition]:
    with database.engine.connect() as connection:
        return [Petition(**row) for row in connection.execute(select(petitions_table)).mappings()]
