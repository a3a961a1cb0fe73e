"""Settings: what is understood, what is refused in one line, and what makes a recipe another one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db_dedup.config import (
    PRESETS,
    Measure,
    Settings,
    Text,
    Value,
    WatchedTable,
    Within,
    database_url,
    watched_table,
)
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.flow.compare.measures import MEASURES, NO_SIMILARITY

TABLE_SETTINGS = [f.alias or name for name, f in WatchedTable.model_fields.items() if name != "name"]
AWKWARD_NAMES = [
    'a "quoted" one',
    "it's",
    "with space",
    "a.b.c",
    "信访件",
    "100%",
    "tab\there",
    "",
    "text",
    "value",
]

names = st.sampled_from([*AWKWARD_NAMES, "id", "title"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=8
)
scalars = (
    st.booleans() | st.integers() | st.floats() | names | st.dates() | st.times()
    | st.sampled_from(["text", "value", "strict", "balanced", "jieba", "raw", "none", "month"])
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
columns = st.dictionaries(
    names,
    st.integers(-1, 1001) | values | st.fixed_dictionaries({}, optional={"kind": scalars, "weight": scalars}),
    max_size=4,
)
files = st.sampled_from(["words.txt", "missing.txt", ".", "\0", "binary"]) | values
options = st.dictionaries(st.sampled_from(TABLE_SETTINGS), values, max_size=4)
tables = st.builds(
    lambda own, cols, lists: {**own, **lists, "columns": cols},
    options,
    columns | values,
    st.fixed_dictionaries({}, optional={"user_dictionary": files, "stop_words_file": files}),
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "database": st.dictionaries(st.sampled_from(["url", "schema", "prefix", "uri"]), values) | values,
        "tables": st.dictionaries(names, tables | values, max_size=2) | values,
        "other": values,
    },
)
good_columns = st.dictionaries(
    names,
    st.builds(Text, weight=st.integers(1, 1000)) | st.builds(Value, weight=st.integers(1, 1000)),
    min_size=1,
    max_size=3,
)
watched_tables = st.builds(
    WatchedTable,
    name=names,
    columns=good_columns,
    table=st.none() | names,
    schema_name=st.none() | names,
    key=st.none() | st.lists(names, min_size=1, max_size=3).map(tuple),
    order=st.none() | names,
    where=st.none() | names,
    within=st.lists(
        st.builds(Within, column=names, by=st.sampled_from(["value", "day", "month", "year"])), max_size=2
    ).map(tuple),
    threshold=st.none() | st.floats(0, 1),
    radius=st.none() | st.integers(0, 11),
    user_words=st.lists(names, max_size=2).map(tuple),
    stop_word_list=st.none() | st.lists(names, max_size=2).map(tuple),
)


def load(folder: Path, document: str | bytes) -> Settings:
    path = folder / "dedup.toml"
    path.write_bytes(document.encode() if isinstance(document, str) else document)
    return Settings.from_file(path)


def load_table(folder: Path, lines: str, column: str = "title = 1") -> WatchedTable:
    return load(folder, f"[tables.petitions]\n{lines}\n[tables.petitions.columns]\n{column}\n").watched(
        "petitions"
    )


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(documents)
def test_any_document_is_understood_or_refused_in_one_line(tmp_path: Path, document: dict[str, Any]) -> None:
    (tmp_path / "words.txt").write_text("信访\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    try:
        found = load(tmp_path, tomlkit.dumps(document))
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - most documents are faulty, some are not
    else:
        for name, watched in found.tables.items():
            assert watched.name == name
            assert round_trip(watched) == watched


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=40) | st.text(st.characters(exclude_categories=["Cs"])).map(str.encode))
def test_any_bytes_are_understood_or_refused(tmp_path: Path, content: bytes) -> None:
    try:
        assert load(tmp_path, content).tables == {}
    except ConfigError as error:
        assert error.exit_code == 2  # noqa: PT017


@pytest.mark.parametrize(
    "document", ["a = " + "9" * 5000, "a = " + "[" * 5000 + "]" * 5000, "a = 1\na = 2", "a = 2024-13-41"]
)
def test_what_overtaxes_the_parser_is_refused(tmp_path: Path, document: str) -> None:
    with pytest.raises(ConfigError, match="no valid TOML"):
        load(tmp_path, document)


def test_a_settings_file_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        Settings.from_file(tmp_path)


@settings(max_examples=50)
@given(watched_tables)
def test_a_stored_definition_reads_back_the_same(watched: WatchedTable) -> None:
    again = round_trip(watched)
    assert again == watched
    assert again.recipe_digest() == watched.recipe_digest()
    assert list(again.columns) == list(watched.columns)


def round_trip(watched: WatchedTable) -> WatchedTable:
    return WatchedTable.model_validate_json(watched.model_dump_json(by_alias=True))


@settings(max_examples=50)
@given(names, names)
def test_every_name_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, table: str, column: str
) -> None:
    document = {"tables": {table: {"key": [column], "within": column, "columns": {column: 3}}}}
    found = load(tmp_path_factory.getbasetemp(), tomlkit.dumps(document)).watched(table)
    assert found.columns == {column: Text(weight=3)}
    assert (found.key, found.within) == ((column,), (Within(column=column),))


def test_short_forms(tmp_path: Path) -> None:
    short = load_table(
        tmp_path, 'key = "id"\nwithin = "region"', "title = 2\ncontent = {}\nregion = {kind = 'value'}"
    )
    assert short.key == ("id",)
    assert short.within == (Within(column="region"),)
    assert short.columns == {"title": Text(weight=2), "content": Text(), "region": Value(weight=2)}
    long = load_table(
        tmp_path, 'key = ["a", "b"]\nwithin = ["region", { column = "created_at", by = "month" }]'
    )
    assert long.key == ("a", "b")
    assert long.within == (Within(column="region"), Within(column="created_at", by="month"))
    assert load_table(tmp_path, 'schema = "archive"\ntable = "old"').table_name == "old"


@pytest.mark.parametrize(
    "weight", ["0", "-1", "1001", "1.5", "'many'", "true", "{ weight = 0 }", "{ weight = 1001 }"]
)
def test_a_weight_is_from_1_to_1000(tmp_path: Path, weight: str) -> None:
    with pytest.raises(ConfigError, match=r"table 'petitions': columns\.title"):
        load_table(tmp_path, "", f"title = {weight}")


@pytest.mark.parametrize("weight", [1, 1000])
def test_the_ends_of_that_range_are_in_it(tmp_path: Path, weight: int) -> None:
    assert load_table(tmp_path, "", f"title = {weight}").columns["title"].weight == weight


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("radius = 12", "radius"), ("radius = -1", "radius"), ("threshold = 1.1", "threshold"),
        ("threshold = nan", "threshold"), ("min_features = 0", "min_features"),
        ("abridge_above = 1", "abridge_above"), ("key = []", "key"), ("similarity = 'close'", "similarity"),
        ("within = { column = 'a', by = 'week' }", "within"), ("normaliser = 'loud'", "normaliser"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_names_its_place(tmp_path: Path, line: str, place: str) -> None:
    with pytest.raises(ConfigError, match=f"table 'petitions': {place}"):
        load_table(tmp_path, line)


def test_an_unknown_setting_lists_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'raduis': did you mean radius"):
        load_table(tmp_path, "raduis = 3")
    with pytest.raises(UnknownNameError, match="did you mean stop_words_file"):
        load_table(tmp_path, "stopwords_file = 'a'")


def test_word_lists_lie_beside_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "settings"
    (here / "lists").mkdir(parents=True)
    (here / "lists/words.txt").write_bytes("\ufeff信访件\n\n  红星小区 100 n \r\n".encode())
    (here / "stop.txt").write_text("的\n了\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = load_table(here, "user_dictionary = 'lists/words.txt'\nstop_words_file = 'stop.txt'")
    assert found.user_words == ("信访件", "红星小区 100 n")
    assert found.stop_word_list == ("的", "了")
    absolute = (here / "stop.txt").as_posix()
    assert load_table(here, f"stop_words_file = '{absolute}'").stop_word_list == ("的", "了")


@pytest.mark.parametrize("name", ["missing.txt", ".", "\\u0000"])
def test_a_word_list_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot read word list"):
        load_table(tmp_path, f'user_dictionary = "{name}"')


def test_a_list_and_a_file_of_it_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("信访", encoding="utf-8")
    with pytest.raises(ConfigError, match="user_dictionary and user_words"):
        load_table(tmp_path, "user_dictionary = 'words.txt'\nuser_words = ['信访']")


def test_presets_fill_what_is_left_out() -> None:
    assert table().rule == PRESETS["balanced"]
    assert table(preset="strict").rule == PRESETS["strict"]
    strict = PRESETS["strict"]
    assert (strict.radius, strict.similarity) == (3, "none")
    own = table(preset="strict", radius=0, threshold=0.0, min_features=1).rule
    assert (own.radius, own.threshold, own.min_features, own.stop_words) == (0, 0.0, 1, strict.stop_words)


def test_a_preset_of_text_settings_gives_way_to_the_table_s_own() -> None:
    tweet = table(preset="tweet")
    assert (tweet.rule.normaliser, tweet.recipe.normaliser) == ("tweet", "tweet")
    as_balanced = {"normaliser": "plain", "term_frequency": "raw"}
    assert tweet.rule.model_copy(update=as_balanced) == PRESETS["balanced"]
    assert (tweet.rule.radius, tweet.rule.term_frequency) == (3, "set")
    own_settings = table(normaliser="tweet", term_frequency="set")
    assert tweet.recipe_digest() == own_settings.recipe_digest()
    own = table(preset="tweet", normaliser="plain", segmenter="words")
    assert (own.recipe.normaliser, own.recipe.segmenter) == ("plain", "words")
    stored = own.resolved()
    assert (stored.preset, stored.normaliser, stored.segmenter) == (None, "plain", "words")
    assert stored.recipe_digest() == own.recipe_digest()


def test_every_preset_is_a_value_of_the_setting() -> None:
    assert [table(preset=name).rule for name in PRESETS] == list(PRESETS.values())
    with pytest.raises(ConfigError, match=" or ".join(f'"{name}"' for name in PRESETS)):
        table(preset="lax")


def test_the_measures_are_those_of_the_flow() -> None:
    assert get_args(Measure) == (NO_SIMILARITY, *MEASURES)


def table(**options: Any) -> WatchedTable:
    return watched_table("petitions", {"columns": {"title": 2, "content": 1}, **options})


@pytest.mark.parametrize(
    "change",
    [
        {"columns": {"title": 3, "content": 1}},
        {"columns": {"title": 2}},
        {"columns": {"title": 2, "body": 1}},
        {"columns": {"title": Value(weight=2), "content": 1}},
        {"columns": {"content": 1, "title": 2}},
        {"table": "letters"},
        {"schema": "archive"},
        {"key": "id"},
        {"order": "created_at"},
        {"where": "id > 1"},
        {"within": "region"},
        {"within": {"column": "region", "by": "month"}},
        {"preset": "strict"},
        {"term_frequency": "log"},
        {"min_features": 4},
        {"segmenter": "chars:3"},
        {"normaliser": "tweet"},
        {"user_words": ["信访"]},
        {"stop_words": "drop"},
        {"stop_word_list": ["的"]},
        {"stop_word_list": []},
        {"frames": False},
    ],
    ids=str,
)
def test_what_decides_a_fingerprint_makes_another_recipe(change: dict[str, Any]) -> None:
    assert table(**change).recipe_digest() != table().recipe_digest()


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"columns": {"title": Text(weight=2), "content": {"kind": "text"}}},
        {"table": "petitions"},
        {"radius": 3},
        {"threshold": 0.9},
        {"abridge_above": 5},
        {"exclude_kinds": ["contained", "partial"]},
        {"frame_drift": "wait"},
        {"preset": "balanced"},
        {"min_features": 3},
        {"term_frequency": "raw"},
        {"stop_words": "keep"},
    ],
    ids=str,
)
def test_what_decides_no_fingerprint_keeps_the_recipe(change: dict[str, Any]) -> None:
    assert table(**change).recipe_digest() == table().recipe_digest()


@pytest.mark.parametrize(
    ("settings", "digest"),
    [
        (
            {"columns": {"title": 2, "content": 1}},
            "e48a8ad60788bbd5e687c63f9cac79467112ea58df0471b2230e8dd907bad367",
        ),
        (
            {"columns": {"title": {"kind": "value"}}, "preset": "strict", "normaliser": "tweet"},
            "94b0d9ce3b080df68502304ab9257126fd9c2b3257e5224d31f793b67fbb7add",
        ),
    ],
)
def test_the_digest_of_a_recipe_stays(settings: dict[str, Any], digest: str) -> None:
    """Else every stored answer would belong to another recipe; RECIPE_VERSION is for that."""
    assert watched_table("petitions", settings).recipe_digest() == digest


def test_every_setting_is_sorted_into_one_of_the_two() -> None:
    """A setting that is new has to be put into `recipe_digest`, or beside it."""
    decides_nothing = {
        "name", "preset", "radius", "similarity", "threshold", "abridge_above", "exclude_kinds",
        "frame_drift", "long_grams",
    }  # fmt: skip
    decides = {
        "columns", "frames", "table", "schema_name", "key", "order", "where", "within", "term_frequency",
        "min_features", "sketches", "segmenter", "normaliser", "user_words", "stop_words", "stop_word_list",
        "short_threshold",
    }  # fmt: skip
    assert set(WatchedTable.model_fields) == decides | decides_nothing


def test_the_url_of_the_flag_then_of_the_environment_then_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DB_DEDUP_URL", raising=False)
    of_file = Settings(url="sqlite:///file.db")
    assert database_url(None, of_file) == "sqlite:///file.db"
    with pytest.raises(ConfigError, match="DB_DEDUP_URL"):
        database_url(None, Settings())
    monkeypatch.setitem(os.environ, "DB_DEDUP_URL", "sqlite:///environment.db")
    assert database_url(None, of_file) == "sqlite:///environment.db"
    assert database_url("sqlite:///flag.db", of_file) == "sqlite:///flag.db"
