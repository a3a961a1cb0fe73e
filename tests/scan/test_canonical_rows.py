"""The fingerprints of all rows that can take part in pairs, read in parts."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from sqlalchemy import select

from db_dedup.sample import Sample
from db_dedup.store import reader
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader
from tests.scan.conftest import fill_database, watch
from tests.servers import Database


def test_they_are_those_of_the_table(
    database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_ROWS_A_PART", 7)
    monkeypatch.setattr(reader, "_ROWS_A_PAGE", 7)
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    tables, row = dedup.database.tables, dedup.database.tables.fingerprint
    with database.engine.connect() as connection:
        table_id, recipe = connection.execute(select(row.c.table_id, row.c.recipe).distinct()).one()
        store = FingerprintStore(dedup.database.dialect, tables, table_id, recipe)
        found = store.read_canonical_rows(Reader.for_dialect(store.dialect, lambda: nullcontext(connection)))
        query = select(row.c.id, row.c.fingerprint).where(
            row.c.copy_of.is_(None), row.c.fingerprint.is_not(None)
        )
        wanted = sorted(map(tuple, connection.execute(query)))
    assert sorted(zip(found.ids.tolist(), found.fingerprints.tolist(), strict=True)) == wanted
    assert max(value for _, value in wanted) >= 2**63
