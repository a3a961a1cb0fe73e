"""The one-row look-up misses nothing, and answers from the block indexes alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from db_dedup import Deduplicator
from db_dedup.app import Database as DedupDatabase
from db_dedup.engines.embedded.lookup import EmbeddedLookup
from db_dedup.flow.candidates.blocks import block_values
from db_dedup.records.fingerprints import RowFingerprint
from db_dedup.sample import Sample
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import Asked, find_near, read_classes
from db_dedup.store.reader import Reader
from tests.scan.conftest import fill_database, watch
from tests.scan.plans import PLANS, captured
from tests.servers import Database
from tests.thorough import quick_first

RADII = (0, 1, 3, 4, 7, 8, 11)


def clustered(rng: np.random.Generator, count: int) -> NDArray[np.uint64]:
    """Fingerprints around a few centres, up to twelve bits away."""
    centres = rng.integers(0, 2**64, 5, dtype=np.uint64)
    values = centres[rng.integers(0, 5, count)]
    for _ in range(12):
        flips = np.uint64(1) << rng.integers(0, 64, count, dtype=np.uint64)
        values ^= np.where(rng.random(count) < 0.5, flips, np.uint64(0))
    return values


STORED = {
    "uniform": np.random.default_rng(1).integers(0, 2**64, 1500, dtype=np.uint64),
    "skewed": np.random.default_rng(2).integers(0, 2**14, 1500, dtype=np.uint64) << np.uint64(30),
    "all equal": np.full(300, 0x8000_0000_0000_0001, np.uint64),
    "top bit set": np.random.default_rng(3).integers(0, 2**20, 1500, dtype=np.uint64) | np.uint64(1 << 63),
    "clustered": clustered(np.random.default_rng(4), 1500),
}


def store_fingerprints(database: Database, values: NDArray[np.uint64]) -> FingerprintStore:
    """A store with these fingerprints, their row keys the numbers from 0."""
    ours = DedupDatabase(database.engine)
    ours.upgrade()
    store = FingerprintStore(ours.dialect, ours.tables, table_id=1, recipe=1)
    rows = [RowFingerprint(str(i), None, v, i.to_bytes(16)) for i, v in enumerate(values.tolist())]
    with ours.dialect.write_transaction(database.engine) as connection:
        store.insert_rows(connection, rows)
    return store


@pytest.mark.parametrize("kind", STORED)
def test_the_look_up_equals_brute_force(database: Database, kind: str) -> None:
    values = STORED[kind]
    store = store_fingerprints(database, values)
    rng = np.random.default_rng(9)
    asked = [
        *values[:3].tolist(),
        *(int(v) ^ (1 << 63) ^ (1 << 5) for v in values[3:6]),
        int(rng.integers(2**62)),
    ]
    many = [*asked, *values[-40:].tolist()]
    with database.engine.connect() as connection:
        number_of = {row_id: int(key) for key, row_id in store.read_ids(Reader.of(connection)).items()}
        for radius in RADII:
            for fingerprint in asked:
                (near,) = near_each(connection, store, [fingerprint], radius)
                distances = np.bitwise_count(values ^ np.uint64(fingerprint))
                wanted = {int(i): int(distances[i]) for i in np.flatnonzero(distances <= radius)}
                assert {number_of[i]: distance for i, distance in near.items()} == wanted
            together = near_each(connection, store, many, radius)
            assert together == [near_each(connection, store, [one], radius)[0] for one in many]


def near_each(
    connection: Connection, store: FingerprintStore, asked: Sequence[int], radius: int
) -> list[dict[int, int]]:
    """For each asked fingerprint id -> distance."""
    near: list[dict[int, int]] = [{} for _ in asked]
    found = find_near(connection, store, [Asked(one, block_values(one, radius)) for one in asked], radius)
    for which, row_id, distance in zip(*(part.tolist() for part in found), strict=True):
        assert row_id not in near[which]
        near[which][row_id] = distance
    return near


def test_classes_are_read_by_ids_and_by_digests(database: Database) -> None:
    """Each row comes once, whichever of its class is asked for."""
    store = store_fingerprints(database, np.arange(2_600, dtype=np.uint64) << np.uint64(50))
    with store.dialect.write_transaction(database.engine) as connection:
        id_of = {int(key): row_id for key, row_id in store.read_ids(Reader.of(connection)).items()}
        table = store.tables.fingerprint
        links = [(id_of[i], id_of[0]) for i in (1, 2)] + [(id_of[4], id_of[3])]
        store.dialect.bulk_update(connection, table, "id", ("copy_of",), links)
        digests = [(id_of[i], (0).to_bytes(16)) for i in (1, 2)]
        store.dialect.bulk_update(connection, table, "id", ("digest",), digests)
    with database.engine.connect() as connection:

        def read(ids: Sequence[int], *digests: int) -> list[tuple[int, int]]:
            wanted = [id_of[i] for i in ids]
            rows = read_classes(connection, store, wanted, [own.to_bytes(16) for own in digests])
            return sorted((int(row.row_key), int(row.class_id == id_of[0])) for row in rows)

        assert read([]) == []
        assert read([], 0) == read([0]) == read([0], 0) == [(0, 1), (1, 1), (2, 1)]
        assert read([3, 0], 5) == [(0, 1), (1, 1), (2, 1), (3, 0), (4, 0), (5, 0)]
        assert len(read(range(5, 2_600), 0, 3)) == 2_600 - 5 + 4
        (row,) = read_classes(connection, store, [id_of[2_599]], [])
        assert (row.fingerprint, row.set_generation) == ((2_599 << 50) % 2**64, None)


def test_copies_are_no_candidates(database: Database) -> None:
    """A million equal rows must not be a million candidates: only the first of them has blocks."""
    store = store_fingerprints(database, np.full(50, 1 << 63, np.uint64))
    with store.dialect.write_transaction(database.engine) as connection:
        ids = sorted(store.read_ids(Reader.of(connection)).values())
        store.dialect.bulk_update(
            connection, store.tables.fingerprint, "id", ("copy_of",), [(i, ids[0]) for i in ids[1:]]
        )
    with database.engine.connect() as connection:
        assert near_each(connection, store, [1 << 63], 3) == [{ids[0]: 0}]


@pytest.mark.parametrize("radius_and_count", quick_first([(3, 30), (3, 1), (7, 1), (11, 1), (11, 7)]))
def test_the_look_up_uses_the_block_indexes_and_nothing_else(
    database: Database, radius_and_count: tuple[int, int]
) -> None:
    radius, count = radius_and_count
    values = np.random.default_rng(5).integers(0, 2**64, 20_000, dtype=np.uint64)
    store = store_fingerprints(database, values)
    store.dialect.refresh_statistics(database.engine, store.tables.fingerprint)
    if database.name == "postgresql":
        vacuum(database)
    asked = values[17 : 17 + count].tolist()
    with database.engine.connect() as connection, captured(connection) as statements:
        if database.name == "postgresql":  # a larger table, too, would make it start workers
            connection.execute(text("SET parallel_setup_cost = 0"))
            connection.execute(text("SET parallel_tuple_cost = 0"))
            statements.clear()
        near_each(connection, store, asked, radius)
        assert len(statements) == 1
        used, reads_table = PLANS[database.name](connection, *statements[0])
    assert used == {store.tables.namespace.name(f"fingerprint_block_{i}") for i in (1, 2, 3, 4)}
    # SQLite takes a generated column for all the columns it could be made of, so no index of ours covers it.
    assert reads_table == (database.name == "sqlite")


def vacuum(database: Database) -> None:
    """What autovacuum does in a minute: only then can an index of PostgreSQL answer alone."""
    visible = text("SELECT relallvisible >= relpages FROM pg_class WHERE oid = 'dedup.fingerprint'::regclass")
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        for _ in range(100):  # a snapshot of some other session may hold it up
            connection.execute(text("VACUUM dedup.fingerprint"))
            if connection.execute(visible).scalar_one():
                return
            connection.execute(text("SELECT pg_sleep(0.1)"))
    raise AssertionError("another session holds up VACUUM")


@pytest.mark.parametrize(
    "options",
    quick_first([{}, {"preset": "strict"}, {"within": "region"}, {"radius": 6, "threshold": 0.7}]),
)
def test_a_check_finds_what_the_scan_pairs(
    database: Database, sample: Sample, options: dict[str, object]
) -> None:
    """Each stored row, asked for as a record, is itself found, and the rows that the scan pairs it with."""
    fill_database(database.engine, sample)
    dedup = watch(database.engine, **options)
    dedup.scan()
    partners: dict[str, dict[str, tuple[int, float | None]]] = {}
    for pair in dedup.pairs(expand=True):
        for key, other in ((pair.key_a, pair.key_b), (pair.key_b, pair.key_a)):
            partners.setdefault(key, {})[other] = (pair.distance, pair.similarity)
    paired = [p for p in sample.petitions if str(p.id) in partners][:40]
    alone = [p for p in sample.petitions if str(p.id) not in partners][:20]
    for petition in [*paired, *alone]:
        key = str(petition.id)
        found = dedup.check({"title": petition.title, "content": petition.content, "region": petition.region})
        by_key = {match.row_key: (match.distance, match.similarity) for match in found}
        assert by_key.pop(key) == (0, 1.0)
        assert by_key == partners.get(key, {})
        assert [m.distance for m in found] == sorted(m.distance for m in found)


def test_a_check_asks_again_if_a_scan_has_switched_recipes_meanwhile(
    sqlite_database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was stored under the former recipe is removed: a look-up there finds nothing."""
    fill_database(sqlite_database.engine, sample)
    watch(sqlite_database.engine).scan()
    dedup = Deduplicator(sqlite_database.engine, "petitions")
    check = EmbeddedLookup.check
    switched: list[bool] = []

    def check_after_switch(
        lookup: EmbeddedLookup, connection: Connection, *arguments: Any, **named: Any
    ) -> Any:
        if not switched:
            switched.append(True)
            # As READ COMMITTED does between two statements: let the next one see what is committed by then.
            connection.rollback()
            watch(sqlite_database.engine, segmenter="chars:2").scan()
        return check(lookup, connection, *arguments, **named)

    monkeypatch.setattr(EmbeddedLookup, "check", check_after_switch)
    row = sample.petitions[0]
    assert str(row.id) in {m.row_key for m in dedup.check({"title": row.title, "content": row.content})}
    assert switched


def test_a_check_asks_again_if_triggers_are_made_again_meanwhile(
    sqlite_database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table may have other columns since."""
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine)
    dedup.scan()
    check = EmbeddedLookup.check
    checks: list[EmbeddedLookup] = []

    def check_after_attach(
        lookup: EmbeddedLookup, connection: Connection, *arguments: Any, **named: Any
    ) -> Any:
        checks.append(lookup)
        if len(checks) == 1:
            connection.rollback()
            watch(sqlite_database.engine).attach()
        return check(lookup, connection, *arguments, **named)

    monkeypatch.setattr(EmbeddedLookup, "check", check_after_attach)
    dedup.check({"title": sample.petitions[0].title})
    assert len(set(checks)) == len(checks) == 2


def test_a_check_leaves_the_callers_transaction_alone(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    petition = sample.petitions[0]
    with database.engine.connect() as connection:
        transaction = connection.begin()
        connection.execute(text("UPDATE petitions SET channel = 'x' WHERE id = :id"), {"id": petition.id})
        dedup.check({"title": petition.title, "content": petition.content}, connection)
        assert transaction.is_active
        transaction.rollback()
    assert isinstance(dedup, Deduplicator)
    with database.engine.connect() as connection:
        query = text("SELECT count(*) FROM petitions WHERE channel = 'x'")
        assert connection.execute(query).scalar_one() == 0
