"""A scan by another measure leaves the sets of features as they are: of 3-grams beside sets of words.

A candidate is ruled out by its set before its text is read. The sets of one kind of feature say nothing about
the features of the other kind, so that such a candidate must be read. Nothing may be missed by `check` or by
the worker, in which rows with sets of both kinds are side by side.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import select, text

from db_dedup import Deduplicator
from db_dedup.config import Settings
from db_dedup.jobs.worker.change_worker import ChangeWorker
from tests.servers import Database
from tests.thorough import quick_first
from tests.worker.test_feature_sets import note

ROWS = 12
EDITED = 100
"""The number of a row that is an edited copy, less that of its original."""

_BY_GRAMS = ('similarity = "char_jaccard"', "threshold = 0.6")
_BY_WORDS = ('similarity = "word_jaccard"', "threshold = 0.6")
_BY_PART = ('similarity = "overlap"', "threshold = 0.8")
_BY_WEIGHTS = ('similarity = "cosine"', "threshold = 0.8")

SWITCHES = (
    (_BY_GRAMS, _BY_WORDS),
    (_BY_WORDS, _BY_GRAMS),
    (_BY_GRAMS, _BY_PART),
    (_BY_GRAMS, _BY_WEIGHTS),
    (_BY_WEIGHTS, _BY_GRAMS),
)


def edited(number: int) -> str:
    """The text of a row with three characters replaced, near its start, its middle and its end."""
    characters = list(note(number))
    for place in (20, 80, 140):
        characters[place] = "某"
    return "".join(characters)


def opened(database: Database, folder: Path, lines: tuple[str, ...]) -> Deduplicator:
    """The table by a settings file with these lines; its own settings give each measure the same recipe."""
    settings = [
        *("[tables.notes]", 'order = "received"', 'segmenter = "chars:2"', "frames = false", *lines),
        *("[tables.notes.columns]", 'body = { kind = "text" }'),
    ]
    file = folder / "dedup.toml"
    file.write_text("\n".join(settings), encoding="utf-8")
    return Deduplicator(database.engine, Settings.from_file(file).watched("notes"))


def write(database: Database, numbers: range, texts: list[str]) -> None:
    rows = [{"id": i, "body": body, "received": i} for i, body in zip(numbers, texts, strict=True)]
    with database.engine.begin() as connection:
        connection.execute(text("INSERT INTO notes VALUES (:id, :body, :received)"), rows)


def stored_sets(dedup: Deduplicator) -> dict[str, bytes | None]:
    tables = dedup.database.tables
    c, serving = tables.fingerprint.c, tables.watched_table.c
    query = select(c.row_key, c.feature_set).where(c.recipe == serving.recipe)
    with dedup.database.engine.connect() as connection:
        return {row.row_key: row.feature_set for row in connection.execute(query)}


@pytest.mark.parametrize("switch", quick_first(SWITCHES))
def test_no_duplicate_is_missed_after_a_scan_by_another_measure(
    database: Database, tmp_path: Path, switch: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    before, after = switch
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, received INT)"))
    write(database, range(ROWS), [note(i) for i in range(ROWS)])
    dedup = opened(database, tmp_path, before)
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    of_former_measure = stored_sets(dedup)
    assert len(of_former_measure) == ROWS
    assert None not in of_former_measure.values()

    for number, lines in enumerate((after, before)):
        dedup = opened(database, tmp_path, lines)
        dedup.scan()
        assert {key: stored_sets(dedup)[key] for key in of_former_measure} == of_former_measure
        half = range(number * ROWS // 2, (number + 1) * ROWS // 2)
        checked = dedup.check_many([{"body": edited(i)} for i in range(ROWS)])
        found = [[match.row_key for match in result.matches] for result in checked]
        copies = [[str(i + EDITED)] if i < half.start else [] for i in range(ROWS)]
        assert [sorted(keys) for keys in found] == [
            sorted([str(i), *more]) for i, more in zip(range(ROWS), copies, strict=True)
        ]
        # The worker stores the sets of these rows by the measure in use.
        write(database, range(half.start + EDITED, half.stop + EDITED), [edited(i) for i in half])
        ChangeWorker([dedup.worker()]).run(threading.Event(), drain=True)
        assert len(dedup.groups()) == half.stop
        assert dedup.verify().is_right
