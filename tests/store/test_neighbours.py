"""The rows around a change are found by the index of what is asked for, however many other rows there are."""

import numpy as np
import pytest

from db_dedup.store.neighbours import canonical_rows, canonical_rows_in_groups, exact_duplicates
from db_dedup.store.reader import Reader
from tests.scan.plans import PLANS, captured
from tests.scan.test_lookup import store_fingerprints
from tests.servers import Database, other_plans


def test_each_look_up_uses_its_index(database: Database) -> None:
    """Of 20,000 rows 200 are exact duplicates, 600 are in groups of two, and the others alone.

    SQLite knows how many rows a value has on average, and counts NULL as one of the values.
    """
    if other_plans.ARE_ASKED and database.name == "postgresql":
        pytest.skip("PostgreSQL may use no index then")
    store = store_fingerprints(database, np.arange(20_000, dtype=np.uint64))
    with store.dialect.write_transaction(database.engine) as connection:
        ids = sorted(store.read_ids(Reader.of(connection)).values())
        copies = [(copy, first) for first, copy in zip(ids[:200], ids[200:400], strict=True)]
        members = [(row, ids[400 + place // 2 * 2]) for place, row in enumerate(ids[400:1_000])]
        for column, values in (("copy_of", copies), ("group_id", members)):
            store.dialect.bulk_update(connection, store.tables.fingerprint, "id", (column,), values)
    store.dialect.refresh_statistics(database.engine, store.tables.fingerprint)
    digests = [place.to_bytes(16) for place in range(40)]
    with database.engine.connect() as connection, captured(connection) as statements:
        assert len(canonical_rows_in_groups(connection, store, ids[400:480:2])) == 80
        assert len(canonical_rows(connection, store, digests)) == 40
        assert len(exact_duplicates(connection, store, ids[:40])) == 40
        used = [PLANS[database.name](connection, *statement)[0] for statement in statements.copy()]
    names = ("fingerprint_group", "fingerprint_digest", "fingerprint_copy_of")
    assert used == [{store.tables.namespace.name(name)} for name in names]
