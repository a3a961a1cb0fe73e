"""A second scan segments only what may have changed its answer, and writes only what differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import event, text, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.sample import Sample
from tests.interrupted.conftest import by_settings, dump, fresh_answer
from tests.scan.conftest import answer
from tests.servers import Database

SIGN_BIT = 1 << 63


@contextmanager
def writes_to(database: Database, *names: str) -> Iterator[list[str]]:
    """The statements that write to these tables of ours, as they are run."""
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        verb, written = statement.split(maxsplit=1)[0], statement.replace("dedup.", "dedup_")
        if verb in ("INSERT", "UPDATE", "DELETE") and any(f"dedup_{name}" in written for name in names):
            statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield statements
    event.remove(database.engine, "before_cursor_execute", note)


def places(database: Database) -> list[tuple[Any, ...]]:
    """Where PostgreSQL keeps each version of our rows: a row that is written is written elsewhere."""
    if database.name != "postgresql":
        return []
    found = []
    with database.engine.connect() as connection:
        for name in ("fingerprint", "pair", "band", "sketch_segment", "sketch_index"):
            query = text(f"SELECT ctid::text, xmin::text FROM dedup.{name} ORDER BY ctid")
            found += [(name, *row) for row in connection.execute(query)]
    return found


def test_nothing_is_written_where_nothing_changed(petitions: Database) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    stored, stand = dump(dedup, "scan"), places(petitions)
    assert any(row[5] is not None and row[5] >= SIGN_BIT for row in stored["fingerprint"])
    with writes_to(petitions, "fingerprint", "pair", "band", "sketch_segment", "sketch_index") as statements:
        report = dedup.scan()
    assert statements == []
    assert dump(dedup, "scan") == stored
    assert places(petitions) == stand
    assert report.segmented == 0


def test_without_a_similarity_no_text_is_segmented_again(petitions: Database) -> None:
    dedup = Deduplicator(petitions.engine, "petitions", {"title": 1, "content": 1}, preset="strict")
    dedup.upgrade()
    assert dedup.scan().segmented == 90
    assert dedup.scan().segmented == 0
    assert dedup.scan(rebuild=True).segmented == 90


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
    connection.execute(update(petitions_table).where(petitions_table.c.id == row_id).values(content=content))


def test_another_order_changes_representatives_and_no_fingerprint(petitions: Database) -> None:
    """Which row was received first is no part of its text: it is written, but nothing is segmented for it."""
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    group = dedup.groups()[0]
    last = dedup.members(group.group_id)[-1]
    with petitions.engine.begin() as connection:
        connection.execute(
            update(petitions_table)
            .where(petitions_table.c.id == int(last))
            .values(created_at=datetime(1990, 1, 1))
        )
    assert dedup.scan().segmented == 0
    assert dedup.members(last)[0] == last
    assert dedup.verify().is_right
    assert answer(dedup) == fresh_answer(dedup)
