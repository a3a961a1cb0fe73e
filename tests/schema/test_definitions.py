"""Stored definitions of every format are read, for good; a newer one is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import update

from db_dedup import Deduplicator
from db_dedup.config import PRESETS, WatchedTable, watched_table
from db_dedup.errors import SchemaMissingError
from db_dedup.records.recipe import RECIPE_VERSION
from db_dedup.schema.definitions import FORMAT, definition_text, read_definition, rewritten
from db_dedup.store.watched_tables import definition_of
from tests.servers import Database

FORMAT_1: dict[str, Any] = {
    "name": "petitions",
    "columns": {"title": {"kind": "text", "weight": 2}, "region": {"kind": "value", "weight": 2}},
    "table": None,
    "schema": "public",
    "key": ["id"],
    "order": "created_at",
    "where": "id > 0",
    "within": [{"column": "region", "by": "value"}],
    "preset": "balanced",
    "radius": 5,
    "similarity": None,
    "threshold": None,
    "term_frequency": "log",
    "min_features": None,
    "bands": None,
    "segmenter": "jieba",
    "normaliser": "tweet",
    "user_words": ["滨江路"],
    "stop_words": None,
    "stop_word_list": ["的"],
    "abridge_above": 1000,
}
"""As release 0.1.0 stored it."""

FORMAT_2: dict[str, Any] = {
    **FORMAT_1,
    "format": 2,
    "recipe_version": 1,
    "preset": None,
    "similarity": "char_overlap",
    "threshold": 0.57,
    "min_features": 3,
    "bands": True,
    "stop_words": "keep",
}

FORMAT_3: dict[str, Any] = {
    **{name: value for name, value in FORMAT_2.items() if name != "bands"},
    "format": 3,
    "sketches": True,
}

FORMAT_4: dict[str, Any] = {
    **FORMAT_3,
    "format": 4,
    "frames": False,
    "short_threshold": 0.0,
    "long_grams": False,
    "exclude_kinds": [],
    "frame_drift": "rebuild",
}

SETTINGS_OF = {
    4: {
        "abridge_above", "columns", "exclude_kinds", "frame_drift", "frames", "key", "long_grams",
        "min_features", "name", "normaliser", "order", "preset", "radius", "schema", "segmenter",
        "short_threshold", "similarity", "sketches", "stop_word_list", "stop_words", "table",
        "term_frequency", "threshold", "user_words", "where", "within",
    }
}  # fmt: skip
"""Format -> its settings."""


def test_a_change_of_the_settings_is_a_new_format() -> None:
    """Else a database of today could not be read after it: raise FORMAT, add a step, write it down here."""
    names = {field.alias or name for name, field in WatchedTable.model_fields.items()}
    assert names == SETTINGS_OF[FORMAT]


@pytest.mark.parametrize("stored", [FORMAT_1, FORMAT_2, FORMAT_3, FORMAT_4])
def test_every_format_is_read(stored: dict[str, Any]) -> None:
    assert read_definition(json.dumps(stored), "petitions") == FORMAT_4


def test_strict_of_format_1() -> None:
    found = rewritten({**FORMAT_1, "preset": "strict", "radius": None, "term_frequency": None}, 2)
    rule = {
        "radius": 3,
        "similarity": "none",
        "threshold": 0,
        "term_frequency": "raw",
        "stop_words": "drop",
        "min_features": 3,
        "bands": False,
    }
    assert rule.items() <= found.items()


def test_a_step_stops_at_its_target() -> None:
    assert rewritten(FORMAT_2, 1) == FORMAT_2
    assert rewritten(FORMAT_1, 1) == FORMAT_1


def test_a_stored_rule_does_not_follow_its_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watched_table("petitions", {"columns": {"title": 1}, "preset": "balanced", "radius": 5})
    text = definition_of(watched)
    changed = {name: rule.model_copy(update={"threshold": 0.9}) for name, rule in PRESETS.items()}
    monkeypatch.setattr("db_dedup.config.table.PRESETS", changed)
    stored = read_definition(text, "petitions")
    assert (stored.pop("format"), stored.pop("recipe_version")) == (FORMAT, RECIPE_VERSION)
    read = WatchedTable.model_validate(stored)
    assert (read.preset, read.rule.threshold, read.rule.radius) == (None, 0.57, 5)
    assert watched.rule.threshold == 0.9
    assert read == read.resolved()


def test_a_newer_format_is_refused(database: Database) -> None:
    database.engine.connect().close()
    dedup = Deduplicator(database.engine, "petitions")
    dedup.upgrade()
    text = definition_text({"name": "petitions", "frames": True}, RECIPE_VERSION + 1)
    newer = {**json.loads(text), "format": FORMAT + 1}
    table = dedup.database.tables.watched_table
    with database.engine.begin() as connection:
        connection.execute(table.insert().values(name="petitions", definition=json.dumps(newer)))
    with pytest.raises(
        SchemaMissingError, match=rf"'petitions' are stored in format {FORMAT + 1}, .*: upgrade"
    ):
        dedup.database.status()
    with database.engine.begin() as connection:
        connection.execute(update(table).values(definition=json.dumps(FORMAT_1)))
    assert [found.table for found in dedup.database.status()] == ["petitions"]
