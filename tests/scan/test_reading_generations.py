"""How the pieces of a generation are read and written: those of a new one at once, none of a deleted one."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Connection, update

from db_dedup import Deduplicator
from db_dedup.errors import DedupError
from db_dedup.flow.candidates import changed_rows
from db_dedup.flow.candidates.segments import Part, hashes_of
from db_dedup.store import segment_lookup, segments
from db_dedup.store.changed_rows import mark_changed, read_changed
from db_dedup.store.segment_lookup import IndexMemory, SegmentSearch, read_beside
from db_dedup.store.segments import Generation
from tests.flow.reference import sketches_of
from tests.scan.indexes import fold, store_drawn, stored_table
from tests.scan.plans import captured, scans

PIECES = 3_000
KEY_PARTS = 4  # the number of a piece is the last of these


def test_a_generation_that_is_deleted_meanwhile_is_read_again(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 1)
    _, store = stored_table(scanned)
    sketched = sketches_of([*store_drawn(scanned, folded=10**6).values()])
    hashes, reads = np.unique(hashes_of(sketched.values)), count()
    read = SegmentSearch._read

    def read_and_fold(search: SegmentSearch, generation: Generation, pieces: NDArray[np.int64]) -> Any:
        if next(reads) == 2:
            assert fold(scanned)
        return read(search, generation, pieces)

    monkeypatch.setattr(SegmentSearch, "_read", read_and_fold)
    engine = scanned.database.engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        found = SegmentSearch(connection, store, hashes, IndexMemory()).find()
        now = segments.find_generation(connection, store)
    assert next(reads) > 3
    assert found.generation == now
    assert found.postings.rows.size == sketched.values.size


def test_bits_of_rows_between_many_others_stay(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many rows the pieces are read that have the bits of others, too."""
    monkeypatch.setattr(changed_rows, "_MANY_ROWS", 7)
    monkeypatch.setattr(changed_rows, "_ROWS_AT_A_TIME", 2)
    database, (_, store) = scanned.database, stored_table(scanned)
    with database.dialect.write_transaction(database.engine) as connection:
        generation = segments.find_generation(connection, store)
        assert generation is not None
        mark_changed(connection, store, generation, [200_000])
        mark_changed(connection, store, generation, [*range(5, 12), 400_000])
        asked = np.array([4, 5, 12, 199_999, 200_000, 300_000, 400_000, 400_001], np.int64)
        found = read_changed(connection, store, asked).are(asked)
    assert asked[found].tolist() == [5, 200_000, 400_000]


def test_damaged_bits_are_an_error(scanned: Deduplicator) -> None:
    database, (_, store) = scanned.database, stored_table(scanned)
    table = store.tables.sketch_segment
    with database.dialect.write_transaction(database.engine) as connection:
        generation = segments.find_generation(connection, store)
        assert generation is not None
        mark_changed(connection, store, generation, [1])
        connection.execute(update(table).where(table.c.piece == -(2**31)).values(packed=b"few"))
        with pytest.raises(DedupError, match="damaged"):
            read_changed(connection, store, np.array([1], np.int64))


def looked_up_in_postgresql(connection: Connection, statement: str, parameters: Any) -> bool:
    plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    (found,) = (node for node in scans(plan[0]["Plan"]) if "Index Name" in node)
    return "piece =" in found["Index Cond"] and "Filter" not in found


def looked_up_in_mysql(connection: Connection, statement: str, parameters: Any) -> bool:
    plan = connection.exec_driver_sql(f"EXPLAIN FORMAT=TRADITIONAL {statement}", parameters).mappings()
    (found,) = (row for row in plan if row["table"] == "dedup_sketch_segment")
    return found["type"] == "ref" and found["key"] == "PRIMARY" and len(found["ref"].split(",")) == KEY_PARTS


LOOKED_UP = {
    "postgresql": looked_up_in_postgresql,
    "mariadb": looked_up_in_mysql,
    "mysql": looked_up_in_mysql,
}


@pytest.mark.parametrize("database", ["mariadb", "mysql"], indirect=True)
@pytest.mark.parametrize("charset", ["latin1", "binary"])
def test_pieces_are_read_whatever_the_session_writes_its_texts_in(
    scanned: Deduplicator, charset: str
) -> None:
    _, store = stored_table(scanned)
    with scanned.database.engine.connect() as connection:
        generation = segments.find_generation(connection, store)
        assert generation is not None
        connection.exec_driver_sql(f"SET character_set_connection = {charset}")
        assert read_beside(connection, store, generation, [-1])[-1]
        connection.invalidate()


@pytest.mark.parametrize("database", [*LOOKED_UP], indirect=True)
def test_pieces_of_a_new_generation_are_looked_up(scanned: Deduplicator) -> None:
    """The statistics know only the generation before it."""
    database, (_, store) = scanned.database, stored_table(scanned)
    chance = Random(3)
    generations = [Generation(number, PIECES, PIECES) for number in (1, 2)]
    for generation in generations:
        with database.dialect.write_transaction(database.engine) as connection:
            parts = (Part(piece, 0, chance.randbytes(500)) for piece in range(PIECES))
            segments.put_parts(connection, store, generation, parts)
        if generation is generations[0]:
            database.dialect.refresh_statistics(database.engine, database.tables.sketch_segment)
    with database.engine.connect() as connection, captured(connection) as statements:
        wanted = range(0, PIECES, 10)
        assert read_beside(connection, store, generations[1], wanted).keys() == set(wanted)
        assert LOOKED_UP[connection.dialect.name](connection, *statements[-1])
