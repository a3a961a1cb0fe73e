"""The sets beside the segments, kept in memory, rule out what they should, after any history of changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from sqlalchemy import Connection, func, select, update

from db_dedup import Deduplicator
from db_dedup.engines.embedded import lookup, segment_sets, sharing
from db_dedup.engines.embedded.candidate_search import Candidates, CandidateSearch
from db_dedup.engines.embedded.near_rows import NearRows
from db_dedup.engines.embedded.segment_sets import SegmentSets
from db_dedup.errors import DedupError
from db_dedup.flow.candidates.set_pieces import ROWS_A_PIECE, bounds_in, pack_sets, set_pieces_of
from db_dedup.flow.compare.feature_sets import AskedFeatures
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.jobs.scan.folding import fold
from db_dedup.records import Match
from db_dedup.schema.migrate import downgrade
from db_dedup.store import segment_lookup, set_memory, sketch_lookup, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import Near, read_classes
from db_dedup.store.reader import Reader
from db_dedup.store.segment_lookup import IndexMemory
from db_dedup.store.segments import Generation, find_generation
from db_dedup.store.set_memory import SetMemory
from db_dedup.store.sketch_contents import IndexContents
from db_dedup.store.sketch_lookup import have_sets_in
from db_dedup.store.source import Source
from tests.worker.test_feature_sets import _NOTES, dedup, note, write

__all__ = ["dedup"]

_SENTENCES = [note(1000 + i)[:40] + "，" for i in range(60)]


def letter(chance: Random) -> str:
    """A text of one to ten sentences, which others have, too."""
    return "".join(chance.sample(_SENTENCES, chance.randrange(1, 11)))


def matches(dedup: Deduplicator, texts: Iterable[str]) -> list[list[Match]]:
    return [dedup.check({"body": each}) for each in texts]


def without_sets(monkeypatch: pytest.MonkeyPatch, dedup: Deduplicator, texts: list[str]) -> Any:
    """The same checks by a process of its own that rules nothing out by sets."""

    def all_may(*given: Any) -> Any:
        return np.ones(given[1].size, np.bool_)

    with monkeypatch.context() as patched:
        for module in (sharing, segment_sets):
            patched.setattr(module, "may_be_alike", all_may)
        return matches(Deduplicator(dedup.database.engine, _NOTES), texts)


def store_of(dedup: Deduplicator) -> FingerprintStore:
    database = dedup.database
    with database.engine.connect() as connection:
        table = watched_tables.find_table(connection, database.tables, "notes")
    assert table is not None
    assert table.recipe is not None
    return FingerprintStore(database.dialect, database.tables, table.id, table.recipe)


def fold_now(dedup: Deduplicator) -> None:
    database = dedup.database
    with database.engine.connect() as connection:
        table = watched_tables.find_table(connection, database.tables, "notes")
    assert table is not None
    assert fold(database.engine, database.dialect, database.tables, table)


def test_checks_with_sets_in_memory_find_what_those_without_sets_find(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    chance, found = Random(3), 0
    for key in range(100, 160):
        write(dedup, "INSERT INTO notes VALUES (:id, :body, :id)", id=key, body=letter(chance))
    for step in range(12):
        if step % 3 == 0:
            fold_now(dedup)
        elif step % 3 == 1:
            for key in chance.sample(range(100, 160), 5):
                write(dedup, "UPDATE notes SET body = :body WHERE id = :id", id=key, body=letter(chance))
        else:
            write(dedup, "DELETE FROM notes WHERE id = :id", id=chance.randrange(100, 160))
        texts = [letter(chance) for _ in range(6)] + [note(step)[1:]]
        own = matches(dedup, texts)
        assert own == without_sets(monkeypatch, dedup, texts)
        together = dedup.check_many({"body": each} for each in texts)
        assert [result.matches for result in together] == own
        found += sum(map(len, own))
    assert found > 30


def test_rows_that_a_set_in_memory_rules_out_are_not_read(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    read: list[int] = []
    original = sketch_lookup.read_sketched

    def read_sketched(connection: Any, store: Any, ids: np.ndarray, *memory: Any) -> Any:
        read.extend(ids.tolist())
        return original(connection, store, ids, *memory)

    monkeypatch.setattr(sharing, "read_sketched", read_sketched)
    assert dedup.check({"body": note(200)}) == []
    assert len(read) <= 3
    # Of a row that has changed since the segments were written, only its own row tells.
    write(dedup, "UPDATE notes SET body = :body WHERE id = 5", body=note(300))
    read.clear()
    assert dedup.check({"body": note(200)}) == []
    assert 1 <= len(read) <= 3


def test_a_set_counts_while_the_row_says_so(dedup: Deduplicator) -> None:
    """Neither that of a row that has changed since, nor that of another generation than the active one."""
    store, database = store_of(dedup), dedup.database

    def counting(generation: Generation) -> list[bool]:
        with database.engine.connect() as connection:
            id_of = {int(key): i for key, i in store.read_ids(Reader.of(connection)).items()}
            ids = np.array([id_of.get(key, 10**9) for key in (4, 5, 6)])
            classes = read_classes(connection, store, ids.tolist(), [])
            near = NearRows(1)
            near.add(np.zeros(3, np.int64), ids)
            near.rule_out(np.zeros(3, np.int64), ids, generation)
            found = have_sets_in(connection, store, generation, ids).tolist()
            left = near.left(classes)[0] - {10**9}
        assert left == {row.id for row in classes if not found[ids.tolist().index(row.id)]}
        return [bool(each) for each in found]

    def active() -> Generation:
        with database.engine.connect() as connection:
            generation = find_generation(connection, store)
        assert generation is not None
        return generation

    first = active()
    assert counting(first) == [True, True, True]
    write(dedup, "UPDATE notes SET body = :body WHERE id = 5", body=note(300))
    write(dedup, "DELETE FROM notes WHERE id = 6")
    assert counting(first) == [True, False, False]
    fold_now(dedup)
    assert counting(first) == [False, False, False]
    assert counting(active()) == [True, True, False]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the rows whose texts are read, while each stored row counts as near."""
    keys: list[str] = []
    original = Source.read_rows

    def read_rows(self: Source, connection: Any, row_keys: Iterable[str]) -> Any:
        given = list(row_keys)
        keys.extend(given)
        return original(self, connection, given)

    def all_near(connection: Connection, store: FingerprintStore, asked: Sequence[Any], _radius: int) -> Near:
        ids = sorted(store.read_ids(Reader.of(connection)).values())
        which, places = (part.reshape(-1) for part in np.indices((len(asked), len(ids))))
        return Near(which, np.array(ids)[places], np.zeros(which.size, np.int64))

    def all_candidates(self: CandidateSearch, asked: Sequence[Any]) -> Candidates:
        which, ids, _ = all_near(self._connection, self._store, asked, 3)
        order = np.argsort(ids, kind="stable")
        return Candidates(which[order], ids[order])

    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    monkeypatch.setattr(Source, "read_rows", read_rows)
    monkeypatch.setattr(lookup, "find_near", all_near)
    monkeypatch.setattr(CandidateSearch, "_near", all_candidates)
    return keys


def test_a_check_does_not_read_near_rows_that_a_set_rules_out(dedup: Deduplicator, read: list[str]) -> None:
    assert dedup.check({"body": note(200)}) == []
    assert dedup.check({"body": note(200)[:150]}) == []  # it shares no hash with any row
    assert len(read) <= 1
    assert [match.row_key for match in dedup.check({"body": f"{note(7)[1:]}又"})] == ["7"]
    assert len(read) <= 3


def test_the_worker_does_not_read_near_rows_that_a_set_rules_out(
    dedup: Deduplicator, read: list[str]
) -> None:
    write(dedup, "UPDATE notes SET body = :body WHERE id = 5", body=f"{note(5)[1:]}又")
    # Before the lock and under it. The former text is a candidate of the new one, and is not read again.
    assert read == ["5", "5"]
    read.clear()
    write(dedup, "UPDATE notes SET body = :body WHERE id = 6", body=note(301))
    assert {*read} == {"5", "6"}  # the set of row 5 does not count any more


def test_sets_that_do_not_count_rule_nothing_out(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a row that has changed, and one of a row that is gone."""
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    store, database = store_of(dedup), dedup.database
    with database.engine.connect() as connection:
        id_of = store.read_ids(Reader.of(connection))
    ids_before = [id_of[key] for key in ("4", "5", "6")]
    write(dedup, "UPDATE notes SET body = :body WHERE id = 5", body=note(300))
    write(dedup, "DELETE FROM notes WHERE id = 6")
    done = Fingerprinter(_NOTES.recipe).fingerprint([(note(200),)])
    asked = AskedFeatures.of(done.features, done.details, np.zeros(1, np.int64), Rule(_NOTES.setting).numbers)
    with database.engine.connect() as connection:
        generation = find_generation(connection, store)
        assert generation is not None
        sets = SegmentSets(connection, store, generation, asked, IndexMemory())
        ids = np.array(ids_before)
        assert not sets.allow(np.zeros(3, np.int64), ids).any()
        assert sets.rule_out(np.zeros(3, np.int64), ids).tolist() == [True, False, False]


def test_a_row_like_one_that_is_gone_has_no_pair(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segments still have the hashes of the deleted row, and its set beside them."""
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    write(dedup, "DELETE FROM notes WHERE id = 5")
    write(dedup, "UPDATE notes SET body = :body WHERE id = 8", body=f"{note(5)[1:]}又")
    assert dedup.check({"body": note(5)})[0].row_key == "8"
    assert dedup.verify().is_right


def test_a_row_that_has_become_an_exact_duplicate_is_in_no_pair(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segments still have the hashes of its former text, which is like the present one."""
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    for key in (3, 9):
        write(dedup, f"UPDATE notes SET body = :body WHERE id = {key}", body=f"{note(9)[1:]}又")
    write(dedup, "UPDATE notes SET body = :body WHERE id = 12", body=f"{note(9)[2:]}吗")
    assert {match.row_key for match in dedup.check({"body": note(9)})} == {"3", "9", "12"}
    assert dedup.verify().is_right


def test_wrong_sets_are_found_by_verify(dedup: Deduplicator) -> None:
    store, database = store_of(dedup), dedup.database
    c = store.tables.sketch_segment.c
    with database.engine.connect() as connection:
        IndexContents.read(connection, store)
        (piece,) = set_pieces_of(np.array([1]))
        packed = connection.execute(select(c.packed).where(c.piece == int(piece))).scalar_one()
    wrong = packed[:-3] + bytes([packed[-3] ^ 8]) + packed[-2:]
    with database.engine.begin() as connection:
        connection.execute(
            update(store.tables.sketch_segment).where(c.piece == int(piece)).values(packed=wrong)
        )
    with database.engine.connect() as connection, pytest.raises(DedupError, match="sets of features"):
        IndexContents.read(connection, store)


def test_damaged_pieces_and_rows_without_a_set_have_none() -> None:
    ids = np.array([1, 3, ROWS_A_PIECE - 1, 5 * ROWS_A_PIECE + 2], np.int64)
    sets = [b"abc", None, b"de", b"f"]
    pieces = {part.piece: part.packed for part in pack_sets(ids, sets)}
    memory = SetMemory()
    set_memory_of = memory.sets_of(1, ids)
    assert (set_memory_of.begins == set_memory_of.ends).all()
    memory.wanted(1, ids)
    memory.add(1, pieces)
    found = memory.sets_of(1, ids)
    spans = zip(found.begins.tolist(), found.ends.tolist(), strict=True)
    assert [found.packed[begin:end].tobytes() for begin, end in spans] == [b"abc", b"", b"de", b"f"]
    assert bounds_in(next(iter(pieces.values()))[:-1])[1] == b""


def test_pieces_whose_rows_would_take_longer_are_read_however_many_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    monkeypatch.setattr(set_memory, "_PIECES_A_LOOKUP", 2)
    monkeypatch.setattr(set_memory, "_ROWS_WORTH_A_PIECE", 3)
    rows_of_pieces = [3, 1, 4, 2, 3]
    ids = [ROWS_A_PIECE * piece + row for piece, rows in enumerate(rows_of_pieces) for row in range(rows)]
    few = [ROWS_A_PIECE * piece for piece in range(5)]
    pieces = set_pieces_of(np.array(few)).tolist()
    assert sorted(SetMemory().wanted(1, np.array(ids))) == sorted(pieces[i] for i in (0, 2, 4))
    assert len(SetMemory().wanted(1, np.array(few))) == 2


def test_no_look_up_reads_many_times_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    monkeypatch.setattr(segment_lookup, "_SET_PIECES_A_QUERY", 2)
    ids = np.arange(9 * ROWS_A_PIECE)
    packed = {part.piece: part.packed for part in pack_sets(ids, [b"x" * 10] * ids.size)}
    read: list[int] = []

    def read_beside(_connection: Any, _store: Any, _generation: Any, pieces: list[int]) -> dict[int, bytes]:
        read.extend(pieces)
        return {piece: packed[piece] for piece in pieces}

    monkeypatch.setattr(segment_lookup, "read_beside", read_beside)
    memory = IndexMemory(set_bytes=3 * 18 * ROWS_A_PIECE)
    generation, nothing = Generation(1, 1, 1), MagicMock()
    for _ in range(2):
        found = segment_lookup.read_sets(nothing, nothing, generation, ids, memory)
        assert len(read) == 4
        assert np.count_nonzero(found.begins < found.ends) == 4 * ROWS_A_PIECE


def test_memory_keeps_to_its_budget_and_forgets_another_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    ids = np.arange(4 * ROWS_A_PIECE)
    pieces = {part.piece: part.packed for part in pack_sets(ids, [b"x" * 10] * ids.size)}
    memory = SetMemory(budget=12 * ROWS_A_PIECE)
    wanted = memory.wanted(7, ids)
    assert sorted(wanted) == sorted(pieces)
    memory.add(7, {wanted[0]: pieces[wanted[0]]})
    assert memory.wanted(7, ids) == []
    own = memory.sets_of(7, ids)
    assert np.count_nonzero(own.begins < own.ends) == ROWS_A_PIECE
    assert len(memory.wanted(8, ids)) == len(pieces)
    memory.add(7, pieces)
    other = memory.sets_of(8, ids)
    assert not np.any(other.begins < other.ends)


def test_sets_of_very_large_ids_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with a place for each piece up to theirs would be larger than their sets."""
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    monkeypatch.setattr(set_memory, "_MOST_SLOTS", 4)
    ids = np.array([0, 3, 2, 4, 2**31]) * ROWS_A_PIECE
    pieces = {part.piece: part.packed for part in pack_sets(np.sort(ids), [b"set"] * ids.size)}
    memory = SetMemory()
    for some in (ids[1:2], np.sort(ids)):  # the piece of a larger id comes first
        wanted = memory.wanted(1, some)
        memory.add(1, {piece: pieces[piece] for piece in wanted})
    found = memory.sets_of(1, np.sort(ids))
    assert (found.begins < found.ends).tolist() == [True, True, True, False, False]
    assert memory.wanted(1, np.sort(ids)) == []
    assert memory.bytes_used < 10 * 8 * ROWS_A_PIECE
    memory.add(1, pieces)
    assert not np.any(memory.sets_of(1, ids[3:]).ends)


def test_places_of_pieces_take_little_of_a_small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    memory = SetMemory(budget=2**16)
    ids = np.array([1, 2**32])
    wanted = memory.wanted(1, ids)
    memory.add(1, dict.fromkeys(wanted, b""))
    assert len(wanted) == 1
    assert not memory.is_full


def test_an_earlier_version_finds_no_set(dedup: Deduplicator) -> None:
    """It would misunderstand those of this one, and miss duplicates."""
    database = dedup.database
    row, segment = database.tables.fingerprint, database.tables.sketch_segment
    of_sets = segment.c.piece <= int(set_pieces_of(np.zeros(1, np.int64))[0])
    counts = (
        select(func.count()).select_from(row).where(row.c.feature_set.is_not(None)),
        select(func.count()).select_from(segment).where(of_sets),
        select(func.count()).select_from(segment).where(~of_sets),
    )

    def counted(connection: Connection) -> list[int]:
        return [connection.execute(query).scalar_one() for query in counts]

    with database.engine.begin() as connection:
        before = counted(connection)
        assert all(before)
        downgrade(connection, database.namespace, "0012")
        assert counted(connection) == [0, 0, before[2]]
