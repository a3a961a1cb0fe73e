"""A downgrade to a version that does not know the kind of the stored sets deletes them."""

import pytest
from sqlalchemy import func, select

from db_dedup import Deduplicator
from db_dedup.schema.migrate import downgrade, upgrade


@pytest.mark.parametrize("revision", ["0011", "0012", "0014", "0015"])
def test_no_set_is_left(scanned: Deduplicator, revision: str) -> None:
    """What else is stored stays right without them."""
    database = scanned.database
    row, segment = database.tables.fingerprint, database.tables.sketch_segment
    of_rows = select(func.count()).where(row.c.feature_set.is_not(None))
    pieces = select(func.count()).where(segment.c.piece < -(1 << 30))
    with database.engine.begin() as connection:
        assert connection.scalar(of_rows)
        assert connection.scalar(pieces)
        downgrade(connection, database.namespace, revision)
        assert connection.scalar(of_rows) == 0
        assert connection.scalar(pieces) == 0
        upgrade(connection, database.namespace)
    assert scanned.verify().is_right
