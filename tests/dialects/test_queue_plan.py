"""A worker claims the oldest changes of its table through the key of the queue, however long the queue is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert

from db_dedup import Database as OurDatabase
from tests.dialects.tables import EXPLAIN
from tests.servers import Database

ROWS = 2_000
CLAIMED = 20
KEY = {
    "sqlite": "SEARCH dedup_change USING INDEX sqlite_autoindex_dedup_change_1 (table_id=?)",
    "postgresql": "Scan using change_pkey on change",
    "mariadb": "dedup_change ref PRIMARY PRIMARY",
}
SORTED = ("TEMP B-TREE", "Sort ", "filesort", "Using temporary")
READ_WHOLE = ("SCAN dedup_change", "Seq Scan", "dedup_change ALL")


@pytest.mark.parametrize("is_counted", [False, True], ids=["without statistics", "with statistics"])
def test_the_claim_reads_the_key_in_its_order(database: Database, is_counted: bool) -> None:
    ours = OurDatabase(database.engine)
    ours.upgrade()
    change, first = ours.tables.change, datetime(2026, 1, 1)
    rows = [
        {
            "table_id": 1 + number % 3,
            "row_key": str(number),
            "operation": "I",
            "queued_at": first + timedelta(seconds=number),
        }
        for number in range(3 * ROWS)
    ]
    with database.engine.begin() as connection:
        connection.execute(insert(change), rows)
    if is_counted:
        ours.dialect.refresh_statistics(database.engine, change)
    executed: list[tuple[str, Any]] = []

    def keep(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    with database.engine.connect() as connection:
        event.listen(connection, "before_cursor_execute", keep)
        taken = ours.dialect.take_changes(connection, change, 2, CLAIMED, None)
        event.remove(connection, "before_cursor_execute", keep)
        connection.rollback()
        assert taken == [(str(1 + 3 * place), "I") for place in range(CLAIMED)]
        claim, parameters = executed[0]
        explain = EXPLAIN.get(connection.dialect.name, "EXPLAIN FORMAT=TRADITIONAL")
        lines = connection.exec_driver_sql(f"{explain} {claim}", parameters).all()
    plan = " | ".join(" ".join(str(value) for value in line) for line in lines)
    plan = plan.replace(" None ", " ")
    assert not any(sign in plan for sign in READ_WHOLE), plan
    if is_counted or database.name != "postgresql":
        assert KEY[database.name] in plan
        assert not any(sign in plan for sign in SORTED), plan
    else:  # taken for a short queue, it is read by the key and sorted, until autovacuum has counted the rows
        assert "change_pkey" in plan
    ours.close()
