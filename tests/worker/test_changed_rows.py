"""Of a row that has changed only those hashes become single entries that the segments do not have for it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from sqlalchemy import delete, func, select

from db_dedup import Deduplicator
from db_dedup.store import segments, set_memory
from db_dedup.store.sketches import count_single_entries
from tests.worker.test_feature_sets import _NOTES, dedup, write
from tests.worker.test_set_memory import _SENTENCES, fold_now, matches, store_of

__all__ = ["dedup"]

LETTERS = range(100, 160)


def edited(sentences: list[str], chance: Random) -> list[str]:
    """Some of the sentences, or all but one, and sometimes another one."""
    kept = chance.sample(sentences, chance.choice([1, max(1, len(sentences) - 1)]))
    return kept + chance.sample(_SENTENCES, chance.randrange(2))


@pytest.fixture
def letters(dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """Sixty letters of up to ten sentences, in the segments; checks read the sets at once."""
    monkeypatch.setattr(set_memory, "_MISSES_BEFORE", 0)
    chance = Random(5)
    made = {key: chance.sample(_SENTENCES, chance.randrange(1, 11)) for key in LETTERS}
    for key, sentences in made.items():
        write(dedup, "INSERT INTO notes VALUES (:id, :body, :id)", id=key, body="".join(sentences))
    fold_now(dedup)
    return made


def edit(dedup: Deduplicator, key: int, sentences: list[str]) -> None:
    write(dedup, "UPDATE notes SET body = :body WHERE id = :id", id=key, body="".join(sentences))


def entry_counts(dedup: Deduplicator) -> tuple[int, int]:
    """How many single entries there are, and how many hashes the changed rows have."""
    store = store_of(dedup)
    with dedup.database.engine.connect() as connection:
        rows = select(func.count()).select_from(store.tables.band)
        return int(connection.execute(rows).scalar_one()), count_single_entries(connection, store)


def test_checks_find_the_same_before_and_after_a_fold(
    dedup: Deduplicator, letters: dict[int, list[str]]
) -> None:
    """Also rows that have become much shorter, whose former size and set would rule them out."""
    chance, found, saved = Random(7), 0, 0
    for _ in range(6):
        for key in chance.sample(LETTERS, 8):
            letters[key] = edited(letters[key], chance)
            edit(dedup, key, letters[key])
        chosen = [letters[key] for key in chance.sample(LETTERS, 12)]
        texts = ["".join(edited(some, chance) + chance.sample(_SENTENCES, 5)) for some in chosen]
        texts += ["".join(some) for some in chosen]
        before = matches(Deduplicator(dedup.database.engine, _NOTES), texts)
        together = dedup.check_many({"body": each} for each in texts)
        assert dedup.verify().is_right
        written, hashes = entry_counts(dedup)
        saved += hashes - written
        fold_now(dedup)
        after = matches(Deduplicator(dedup.database.engine, _NOTES), texts)
        assert before == after == [result.matches for result in together]
        found += sum(map(len, after))
    assert found > 100
    assert saved > 300


def test_a_row_that_has_changed_twice(dedup: Deduplicator, letters: dict[int, list[str]]) -> None:
    """And one that has its former text again: nothing is written of that but its bit."""
    key = max(letters, key=lambda each: len(letters[each]))
    whole = letters[key]
    edit(dedup, key, whole[:-2])
    edit(dedup, key, whole[:-4])
    assert dedup.verify().is_right
    edit(dedup, key, whole)
    assert entry_counts(dedup)[0] == 0 < entry_counts(dedup)[1]
    assert dedup.verify().is_right
    text = "".join(whole[:-1])
    assert str(key) in {match.row_key for match in dedup.check({"body": text})}


def test_a_fold_between_matching_and_writing(
    dedup: Deduplicator, letters: dict[int, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found is of another generation: all hashes are written."""
    original = segments.find_generation
    key = max(letters, key=lambda each: len(letters[each]))

    def another(connection: Any, store: Any) -> Any:
        found = original(connection, store)
        return found and segments.Generation(found.number + 1, found.piece_count, found.entry_count)

    with monkeypatch.context() as patched:
        patched.setattr("db_dedup.store.sketches.segments.find_generation", another)
        edit(dedup, key, letters[key][:-1])
    written, hashes = entry_counts(dedup)
    assert written == hashes > 0
    assert dedup.verify().is_right


@pytest.mark.parametrize("damage", ["bit", "entry"])
def test_verify_notices_what_is_missing(
    dedup: Deduplicator, letters: dict[int, list[str]], damage: str
) -> None:
    key = max(letters, key=lambda each: len(letters[each]))
    edit(dedup, key, [*letters[key][:-1], _SENTENCES[0][::-1]])
    assert dedup.verify().is_right
    store = store_of(dedup)
    table, band = store.tables.sketch_segment, store.tables.band
    with dedup.database.engine.begin() as connection:
        if damage == "bit":
            connection.execute(delete(table).where(table.c.piece < -(2**31) + 9))
        else:
            value = connection.execute(select(func.min(band.c.value))).scalar_one()
            connection.execute(delete(band).where(band.c.value == value))
    assert not dedup.verify().is_right


def test_a_new_row_with_the_id_of_a_deleted_one(dedup: Deduplicator, letters: dict[int, list[str]]) -> None:
    """SQLite gives ids again. The segments have the deleted row's hashes."""
    last = max(letters)
    write(dedup, "DELETE FROM notes WHERE id = :id", id=last)
    other = [sentence[::-1] for sentence in letters[last]]
    write(dedup, "INSERT INTO notes VALUES (:id, :body, :id)", id=last + 1, body="".join(other))
    assert dedup.verify().is_right
    edit(dedup, last + 1, [*other[1:], *letters[last][:3]])
    assert dedup.verify().is_right
    if dedup.database.engine.dialect.name == "sqlite":
        assert entry_counts(dedup)[0] < entry_counts(dedup)[1]
    text = "".join([*other[1:], *letters[last][:2]])
    assert str(last + 1) in {match.row_key for match in dedup.check({"body": text})}
    fold_now(dedup)
    assert dedup.verify().is_right
