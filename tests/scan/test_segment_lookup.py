"""Look-ups in the index of sketches: whatever was folded, they find what brute force does."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, select

from db_dedup import Deduplicator
from db_dedup.engines.embedded import sharing
from db_dedup.engines.embedded.sharing import find_sharing_rows
from db_dedup.flow.candidates import postings
from db_dedup.flow.candidates.segments import hashes_of
from db_dedup.flow.candidates.sketch_sizes import UNKNOWN_SIZE
from db_dedup.store import segment_lookup, single_entries, sketch_lookup, sketches
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.own_entries import OwnEntries
from db_dedup.store.reader import Reader
from db_dedup.store.segment_lookup import IndexMemory, SegmentSearch
from db_dedup.store.sketch_contents import IndexContents
from tests.bands import canonical_sketches
from tests.flow.reference import sketches_of
from tests.scan.indexes import (
    assert_finds_what_brute_force_does,
    drawn,
    fold,
    make_single,
    store_drawn,
    stored_table,
)

ROWS = 40


def edited(sketch: bytes | None, chance: Random) -> bytes:
    """A sketch with some of the values of another one, few or nearly all, and with some others."""
    if sketch is None or chance.random() < 0.3:
        return drawn(chance)
    values = np.frombuffer(sketch, np.uint64).tolist()
    kept = chance.sample(values, max(1, int(len(values) * chance.choice([0.1, 0.5, 0.9, 1]))))
    others = np.frombuffer(drawn(chance), np.uint64).tolist()[: chance.randrange(4)]
    return np.array(sorted({*kept, *others}), np.uint64).tobytes()


def put(
    connection: Connection,
    store: FingerprintStore,
    new: dict[int, bytes],
    memory: IndexMemory,
    is_matched: bool,
) -> None:
    """Write sketches as a worker does, which has matched their rows ahead or not."""
    own = OwnEntries(sketches_of([*new.values()]), np.array([*new], np.int64))
    if is_matched:
        list(find_sharing_rows(connection, store, sketches_of([*new.values()]), memory=memory, own=own))
    sketches.drop_sketches(connection, store, [*new])
    entries = [entry for entry in own.new_entries() if entry is not None]
    sketches.put_sketches(connection, store, new, new_entries=entries)


@pytest.mark.parametrize("is_matched", [False, True])
@pytest.mark.parametrize("keeps_single", [False, True])
def test_the_index_finds_what_brute_force_does_after_any_history(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch, keeps_single: bool, is_matched: bool
) -> None:
    """Whether or not the single entries are kept in memory, as a worker keeps them."""
    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 2)  # several pieces are searched at the same time
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", 50)
    database, chance = scanned.database, Random(5)
    _, store = stored_table(scanned)
    with database.engine.connect() as connection:
        ids = list(connection.execute(select(store.tables.fingerprint.c.id)).scalars())[:ROWS]
    with database.dialect.write_transaction(database.engine) as connection:
        sketches.drop_all_sketches(connection, store)
    stored: dict[int, bytes] = {}
    memory = IndexMemory(threads=3)
    for _ in range(12):
        changed = chance.sample(ids, 6)
        new = {row_id: edited(stored.get(row_id), chance) for row_id in changed[:4]}
        with database.dialect.write_transaction(database.engine) as connection:
            sketches.drop_sketches(connection, store, changed[4:])
            put(connection, store, new, memory, is_matched)
        memory.single.add(new)
        stored = {row_id: own for row_id, own in stored.items() if row_id not in changed} | new
        if chance.random() < 0.5:
            assert fold(scanned)
        with database.engine.connect() as connection:
            if keeps_single and not memory.single.is_loaded:
                reader = Reader.of(connection)
                memory.single.load(sketches.read_single_sketches(reader, store, by_entries=True))
            asked = [drawn(chance) for _ in range(3)] + list(stored.values())[:3]
            assert_finds_what_brute_force_does(connection, store, stored, asked, memory)
            for one in asked:
                assert_finds_what_brute_force_does(connection, store, stored, [one], memory)
            index = IndexContents.read(connection, store)
        assert index.rows.ids.tolist() == sorted(stored)
        assert index.entry_count == index.wanted_count == sum(len(own) // 8 for own in stored.values())


@pytest.mark.parametrize("is_matched", [False, True])
def test_rows_whose_sketches_have_shrunk_are_found_by_their_present_sizes(
    scanned: Deduplicator, is_matched: bool
) -> None:
    """Beside the segments are their former sizes.

    A row that was matched has no single entries, since the segments have all of its hashes. Another one has
    single entries alone for its hashes, and no bit tells that it has changed.
    """
    database, chance = scanned.database, Random(11)
    _, store = stored_table(scanned)
    stored = store_drawn(scanned, 10**6)
    memory = IndexMemory()
    large = {row_id: own for row_id, own in stored.items() if len(own) > 8 * 72}  # they need four in common
    new = (np.arange(200, 280, dtype=np.uint64) * 2**55 + 1).tobytes()  # passages that no row has
    shrunk = {row_id: _some(own if is_matched else new, 2, chance) for row_id, own in large.items()}
    others = np.arange(300, 380, dtype=np.uint64) * 2**55 + 1
    asked = [_joined(own, others.tobytes()) for own in list(shrunk.values())[:20]]
    with database.engine.connect() as connection:
        for one in asked:  # now the sizes are in memory
            assert_finds_what_brute_force_does(connection, store, stored, [one], memory)
    with database.dialect.write_transaction(database.engine) as connection:
        put(connection, store, shrunk, memory, is_matched)
        has_single = connection.execute(select(store.tables.band.c.value)).first() is not None
        assert has_single is not is_matched
    stored |= shrunk
    with database.engine.connect() as connection:
        assert_finds_what_brute_force_does(connection, store, stored, asked, memory)
        for one in asked:
            assert_finds_what_brute_force_does(connection, store, stored, [one], memory)


@pytest.mark.parametrize("asked_at_once", [1, 2])
def test_two_values_with_the_same_32_bits_are_two_common_hashes(
    scanned: Deduplicator, asked_at_once: int
) -> None:
    """The row has one entry for them: the segments have the one, so the other one was not written."""
    database, memory = scanned.database, IndexMemory()
    _, store = stored_table(scanned)
    row_id, *_ = store_drawn(scanned, 10**6)
    one, other = _two_of_a_hash()
    others = {number * 2**55 + 1 for number in range(400, 440)}
    with database.dialect.write_transaction(database.engine) as connection:
        put(connection, store, {row_id: _sketch({one, *others})}, IndexMemory(), is_matched=False)
    assert fold(scanned)
    with database.dialect.write_transaction(database.engine) as connection:
        put(connection, store, {row_id: _sketch({one, other, *others})}, memory, is_matched=True)
        assert connection.execute(select(store.tables.band.c.value)).first() is None
    asked = _sketch(
        {one, other, *(number * 2**55 + 1 for number in range(200, 240))}
    )  # they need two in common
    with database.engine.connect() as connection:
        sketched = sketches_of([asked] * asked_at_once)
        found = list(find_sharing_rows(connection, store, sketched, memory=memory))
    assert any(row_id in some.ids for some in found)


def _two_of_a_hash() -> tuple[int, int]:
    values = np.unique(np.random.default_rng(3).integers(2**50, 2**63, 400_000, np.uint64) | np.uint64(1))
    hashes = hashes_of(values)
    order = np.argsort(hashes, kind="stable")
    place = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])[0]
    return int(values[order[place]]), int(values[order[place + 1]])


def _sketch(values: set[int]) -> bytes:
    return np.array(sorted(values), np.uint64).tobytes()


def _some(sketch: bytes, count: int, chance: Random) -> bytes:
    return np.sort(
        np.array(chance.sample(np.frombuffer(sketch, np.uint64).tolist(), count), np.uint64)
    ).tobytes()


def _joined(one: bytes, other: bytes) -> bytes:
    return np.union1d(np.frombuffer(one, np.uint64), np.frombuffer(other, np.uint64)).tobytes()


@pytest.mark.parametrize("most_single", [50, 10**6])
@pytest.mark.parametrize("kept_bytes", [0, 300, 10**6])
def test_entries_of_many_rows_are_read_by_ranges_of_ids(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch, most_single: int, kept_bytes: int
) -> None:
    """Whether the single entries fit into memory, and whether the pieces do."""
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", 5)
    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 1)
    monkeypatch.setattr(segment_lookup, "_KEPT_BYTES", kept_bytes)
    monkeypatch.setattr(sketch_lookup, "_ENTRIES_A_PIECE", 50)
    monkeypatch.setattr(sketch_lookup, "_SINGLE_ENTRIES_A_PIECE", most_single)
    _, store = stored_table(scanned)
    stored = store_drawn(scanned, folded=200)
    with scanned.database.engine.connect() as connection:
        shared = sketch_lookup.find_sharing(connection, store, np.zeros(1, np.uint64), IndexMemory())
        assert len(list(shared)) >= 1
        chance = Random(8)
        assert_finds_what_brute_force_does(connection, store, stored, [drawn(chance) for _ in range(5)])


def test_a_search_like_the_last_one_is_divided_at_once(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first search finds too much, of entries and of pairs, and begins again with parts of it."""
    _, store = stored_table(scanned)
    sketched = sketches_of([*store_drawn(scanned, folded=10**6).values()])
    most = 30_000
    monkeypatch.setattr(sketch_lookup, "_ENTRIES_A_PIECE", sketched.values.size // 2)
    monkeypatch.setattr(sharing, "_PAIRS_A_PIECE", most)
    memory, found, too_many = IndexMemory(), [], []
    entries, pairs = sketch_lookup._entries, postings.sharing_pairs

    def noted_entries(*given: Any) -> Any:
        result = entries(*given)
        counts["entries"] += result is None
        return result

    def noted_pairs(*given: Any) -> Any:
        result = pairs(*given)
        counts["pairs"] += result[0].size > most
        return result

    monkeypatch.setattr(sketch_lookup, "_entries", noted_entries)
    monkeypatch.setattr(sharing, "sharing_pairs", noted_pairs)
    with scanned.database.engine.connect() as connection:
        for _ in range(2):
            counts = Counter[str]()
            parts = list(find_sharing_rows(connection, store, sketched, memory=memory))
            found.append({pair for some in parts for pair in zip(some.which, some.ids, strict=True)})
            too_many.append(counts)
    assert found[0] == found[1]
    assert len(found[0]) > most
    assert too_many[0]["entries"] >= 1
    assert too_many[0]["pairs"] >= 1
    assert too_many[1].total() == 0


def test_entries_that_are_folded_between_two_ranges_are_found(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketch_lookup, "_ENTRIES_A_PIECE", 500)
    monkeypatch.setattr(sketch_lookup, "_SINGLE_ENTRIES_A_PIECE", 500)
    _, store = stored_table(scanned)
    stored = store_drawn(scanned, folded=10)
    sketched = sketches_of([*stored.values()])
    owners = np.repeat(np.array([*stored], np.int64), sketched.counts)
    found: set[tuple[int, int]] = set()
    with scanned.database.engine.connect() as connection:
        for number, some in enumerate(
            sketch_lookup.find_sharing(connection, store, sketched.values, IndexMemory())
        ):
            assert isinstance(some, sketch_lookup.SharingWithMany)
            rows = some.ids[some.postings.rows].tolist()
            found.update(zip(some.postings.entry_hashes.tolist(), rows, strict=True))
            if number == 0:
                assert fold(scanned)
    assert number > 1
    assert found == set(zip(hashes_of(sketched.values).tolist(), owners.tolist(), strict=True))


def test_a_search_that_ended_early_goes_on_in_another_generation(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pieces that were kept are of the former one."""
    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 1)
    _, store = stored_table(scanned)
    sketched = sketches_of([*store_drawn(scanned, folded=150).values()])
    hashes = np.unique(hashes_of(sketched.values))
    with scanned.database.engine.connect() as connection:
        search = SegmentSearch(connection, store, hashes, IndexMemory())
        before = search.find(most=1)
        connection.rollback()  # the next statement sees what is committed by then
        assert fold(scanned)
        after = search.find()
    assert before.generation != after.generation
    assert after.postings.rows.size == sketched.values.size


@pytest.mark.parametrize("at_once", [5, 10**6])
def test_too_many_single_entries_are_not_read(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", at_once)
    _, store = stored_table(scanned)
    sketched = sketches_of([*store_drawn(scanned, folded=0).values()])
    wanted, count = np.unique(sketched.values).view(np.int64).tolist(), sketched.values.size
    with scanned.database.engine.connect() as connection:
        assert single_entries.read_entries(connection, store, wanted, None, count) is None
        found = single_entries.read_entries(connection, store, wanted, None, count + 1)
    assert found is not None
    assert found.ids.size == count


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
@pytest.mark.parametrize("most_bytes", [4, 11, 13])
@pytest.mark.parametrize("at_once", [1, 5])
def test_ids_that_the_server_cuts_are_read_row_by_row(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch, most_bytes: int, at_once: int
) -> None:
    """Wherever it cuts: between two ids, or in the last one, so that their number is right."""
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", at_once)
    _, store = stored_table(scanned)
    stored = store_drawn(scanned, folded=0)
    values = np.unique(sketches_of([*stored.values()]).values).view(np.int64).tolist()
    found = []
    with scanned.database.engine.connect() as connection:
        for most in (10**6, most_bytes):
            connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {most}")
            entries = single_entries.read_entries(connection, store, values, None, None)
            assert entries is not None
            found.append(sorted(zip(entries.hashes.tolist(), entries.ids.tolist(), strict=True)))
    assert found[0] == found[1]
    assert len(found[0]) == sum(len(own) // 8 for own in stored.values())


def test_a_row_with_more_pairs_than_a_piece_has_all_of_them(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_PAIRS_A_PIECE", 2)
    _, store = stored_table(scanned)
    stored = {row_id: own.tobytes() for row_id, own in canonical_sketches(scanned).items()}
    asked = [own for own in list(stored.values())[:3] for _ in range(4)]
    with scanned.database.engine.connect() as connection:
        assert_finds_what_brute_force_does(connection, store, stored, asked)


def test_sizes_of_rows_that_have_not_changed_are_known_without_their_rows(scanned: Deduplicator) -> None:
    _, store = stored_table(scanned)
    changed = list(canonical_sketches(scanned))[:10]
    make_single(scanned, len(changed))
    own = canonical_sketches(scanned)
    with scanned.database.engine.connect() as connection:
        found = sketch_lookup.find_sharing(connection, store, np.concatenate([*own.values()]), IndexMemory())
        sizes = {i: size for s in found for i, size in zip(s.ids.tolist(), s.counts.tolist(), strict=True)}
    known = {i: min(values.size, 255) for i, values in own.items() if i not in changed}
    assert sizes == known | dict.fromkeys(changed, UNKNOWN_SIZE)
