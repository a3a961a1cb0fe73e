"""An explanation says what the scan says, of every pair and of what is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, delete, insert, text, update

from db_dedup import Deduplicator, Text, Value
from db_dedup.cli.demo import petitions
from db_dedup.errors import ConfigError, RowNotFoundError
from db_dedup.flow import words as word_hashing
from db_dedup.flow.text.segment import Segmenter, cut_in_batches
from db_dedup.jobs.explain import columns as explained_columns
from db_dedup.present.explanation_words import explanation_lines
from db_dedup.records import Decision, Explanation
from db_dedup.sample import Sample, generate_petitions
from tests.scan.conftest import fill_database, watch
from tests.servers import Database
from tests.thorough import quick_first

LONG = "小区的电梯已经停运三天，老人下楼买菜十分困难，物业说没有维修资金，请尽快督促修好电梯并给居民一个答复"


@pytest.fixture(scope="module")
def sample() -> Sample:
    return generate_petitions(200, seed=3, duplicate_share=0.4)


def scanned(engine: Engine, sample: Sample, **options: Any) -> Deduplicator:
    fill_database(engine, sample)
    dedup = watch(engine, **options)
    dedup.scan()
    return dedup


def add(engine: Engine, key: int, content: str, **values: Any) -> None:
    first = {"title": "", "created_at": generate_petitions(10).petitions[0].created_at}
    with engine.begin() as connection:
        connection.execute(insert(petitions), [{**first, "id": key, "content": content, **values}])


@pytest.mark.parametrize(
    "options",
    quick_first(
        [
            {},
            {"preset": "strict"},
            {"similarity": "char_jaccard", "threshold": 0.3},
            {"similarity": "overlap", "within": "region"},
            {"similarity": "cosine", "term_frequency": "log", "segmenter": "chars:2", "stop_words": "drop"},
        ]
    ),
)
def test_it_says_what_the_scan_says(
    sqlite_database: Database, sample: Sample, options: dict[str, object]
) -> None:
    dedup = scanned(sqlite_database.engine, sample, **options)
    found = {(p.key_a, p.key_b): p for p in dedup.pairs(expand=True)}
    assert len(found) > 20
    for (a, b), pair in list(found.items())[:30]:
        explained = dedup.explain(b, a)
        assert explained.decision in (Decision.COPIES, Decision.DUPLICATE_PAIR)
        assert explained.distance == pair.distance
        measure = options.get("similarity", "char_overlap")
        if pair.similarity is not None:
            assert explained.similarities[str(measure)] == pytest.approx(pair.similarity)
        assert explained.agrees
        assert explained.in_same_group
        check_shares(explained)
    keys = [str(petition.id) for petition in sample.petitions[:12]]
    for a, b in combinations(keys, 2):
        if (a, b) not in found and (b, a) not in found:
            explained = dedup.explain(a, b)
            assert explained.decision is Decision.NO_PAIR
            assert not all(test.passed for test in (*explained.generators, *explained.tests))
            assert explained.agrees
            assert explained.stored is None
            check_shares(explained)


def check_shares(explained: Explanation) -> None:
    bits = [column.differing_bits for column in explained.columns]
    assert explained.distance is not None
    assert sum(bit for bit in bits if bit is not None) == pytest.approx(explained.distance)
    fingerprints = [int(row.fingerprint or "", 16) for row in (explained.row_a, explained.row_b)]
    assert (fingerprints[0] ^ fingerprints[1]).bit_count() == explained.distance


def test_every_kind_of_database_is_asked_the_same(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    for key in (901, 902):
        add(database.engine, key, LONG)
    dedup = watch(database.engine)
    dedup.scan()
    pair = next(pair for pair in list(dedup.pairs()) if pair.distance)
    explained = dedup.explain(pair.key_a, pair.key_b)
    assert explained.stored is not None
    assert (explained.stored.kind, explained.stored.distance) == ("pair", pair.distance)
    assert explained.stored.found_at is not None
    assert explained.agrees
    explained = dedup.explain("902", "901")
    assert explained.decision is Decision.COPIES
    assert explained.row_a.copy_of == "901"
    for missing in ("999999", "x", "", "9" * 40, "1.5", '["1"]', "1 "):
        with pytest.raises(RowNotFoundError, match="is not there"):
            dedup.explain(pair.key_a, missing)


def test_tokens_are_marked_as_the_similarity_counts_them(sqlite_database: Database) -> None:
    sample = generate_petitions(10)
    fill_database(sqlite_database.engine, sample)
    add(sqlite_database.engine, 901, "请修好Ａ３区的电梯，谢谢", title="停运", region="城东区")
    add(sqlite_database.engine, 902, "电梯 停运 了，请修好", title="", region="城西区")
    columns = {"title": Text(weight=3), "content": Text(), "region": Value()}
    dedup = Deduplicator(sqlite_database.engine, "petitions", columns, stop_word_list=["了"])
    dedup.upgrade()
    dedup.scan()
    explained = dedup.explain("901", "902")
    title, content, region = explained.columns
    assert [(c.name, c.kind, c.weight) for c in explained.columns] == [
        ("title", "text", 3), ("content", "text", 1), ("region", "value", 2)
    ]  # fmt: skip
    assert content.value_a == "请修好Ａ３区的电梯，谢谢"
    assert content.text_a == "请修好a3区的电梯,谢谢"
    marks = {token.text: token.mark for token in content.tokens_a}
    assert (marks["电梯"], marks["谢谢"], marks[","]) == ("shared", "differs", "ignored")
    # A word counts wherever it stands: in the title of the one, in the content of the other.
    assert {token.text: token.mark for token in title.tokens_a} == {"停运": "shared"}
    marks = {token.text: token.mark for token in content.tokens_b}
    assert (marks["停运"], marks["了"], marks[" "]) == ("shared", "ignored", "ignored")
    assert title.tokens_b == ()
    assert [token.mark for token in (*region.tokens_a, *region.tokens_b)] == ["differs", "differs"]
    shared, all_words = words(explained, "shared"), words(explained, "shared", "differs")
    assert explained.similarities["word_jaccard"] == len(shared) / len(all_words)


def test_a_text_is_cut_once_and_the_tokens_near_its_differences_are_given(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_database(sqlite_database.engine, generate_petitions(10))
    texts = [f"{LONG}。" * 300 + middle + f"。{LONG}" * 300 for middle in ("丙", "丁")]
    for i in (0, 1):
        add(sqlite_database.engine, 901 + i, texts[i])
    dedup = watch(sqlite_database.engine)
    dedup.scan()
    whole = dedup.explain("901", "902")
    cut: list[str] = []

    def spy(segmenter: Segmenter, texts: list[str]) -> Iterator[list[str]]:
        cut.extend(filter(None, texts))
        return cut_in_batches(segmenter, texts)

    monkeypatch.setattr(word_hashing, "cut_in_batches", spy)
    monkeypatch.setattr(explained_columns, "MOST_TOKENS", 100)
    found = dedup.explain("901", "902")
    content = found.columns[1]
    assert cut == [content.text_a, content.text_b]
    tokens = [token.text for token in content.tokens_a if token.mark != "left_out"]
    assert len(tokens) == 20 + 20 + 1 + 20 + 20
    all_tokens = [token.text for token in whole.columns[1].tokens_a]
    place = all_tokens.index("丙")
    assert tokens == all_tokens[:20] + all_tokens[place - 20 : place + 21] + all_tokens[-20:]
    assert content.left_out_a == len(all_tokens) - len(tokens)
    assert (whole.columns[1].left_out_a, "".join(all_tokens)) == (0, content.text_a)
    assert replace(found, columns=()) == replace(whole, columns=())


@pytest.mark.parametrize("most", [60, 100, 1_000])
def test_no_more_tokens_than_the_limit_are_given(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explained_columns, "MOST_TOKENS", most)
    for differs in (np.ones(5_000, np.bool_), np.arange(5_000) % 50 == 0, np.zeros(5_000, np.bool_)):
        is_given = explained_columns.near_differences(differs)
        assert is_given[:20].all()
        assert is_given[-20:].all()
        assert 40 <= np.count_nonzero(is_given) <= most
    assert explained_columns.near_differences(np.ones(most, np.bool_)).all()


def words(explained: Explanation, *marks: str) -> set[tuple[str, str]]:
    """The different features of both rows; a value carries its column's name."""
    return {
        (column.name if column.kind == "value" else "", token.text)
        for column in explained.columns
        for token in (*column.tokens_a, *column.tokens_b)
        if token.mark in marks
    }


def test_what_has_changed_since_the_scan_is_said(sqlite_database: Database, sample: Sample) -> None:
    engine = sqlite_database.engine
    dedup = scanned(engine, sample)
    pair = next(pair for pair in list(dedup.pairs()) if pair.distance)
    with engine.begin() as connection:
        values = {"title": "完全不同", "content": "今天天气很好，公园里的人很多，大家都在散步聊天"}
        connection.execute(update(petitions).where(petitions.c.id == int(pair.key_b)).values(values))
    explained = dedup.explain(pair.key_a, pair.key_b)
    assert (explained.row_a.state, explained.row_b.state) == ("unchanged", "changed")
    assert explained.decision is Decision.NO_PAIR
    assert explained.stored is not None
    assert not explained.agrees
    assert explained.in_same_group

    with engine.begin() as connection:
        connection.execute(delete(petitions).where(petitions.c.id == int(pair.key_b)))
    with pytest.raises(RowNotFoundError, match="is gone"):
        dedup.explain(pair.key_a, pair.key_b)

    add(engine, 901, LONG)
    add(engine, 902, LONG + "。谢谢")
    explained = dedup.explain("901", "902")
    assert (explained.row_a.state, explained.row_b.state) == ("new", "new")
    assert explained.decision is Decision.DUPLICATE_PAIR
    assert not explained.agrees


def test_rows_of_one_group_that_are_no_pair(sqlite_database: Database, sample: Sample) -> None:
    by_words = {"radius": 11, "similarity": "word_jaccard", "threshold": 0.5, "sketches": False}
    dedup = scanned(sqlite_database.engine, sample, **by_words)
    pairs = {frozenset((p.key_a, p.key_b)) for p in dedup.pairs(expand=True)}
    apart = next(
        (a, b)
        for group in dedup.groups()
        for a, b in combinations(dedup.members(group.group_id), 2)
        if frozenset((a, b)) not in pairs
    )
    explained = dedup.explain(*apart)
    assert explained.decision is Decision.NO_PAIR
    assert explained.in_same_group
    assert explained.row_a.group_id == explained.row_b.group_id is not None


def test_an_abridged_group_need_not_keep_the_pair(sqlite_database: Database) -> None:
    engine = sqlite_database.engine
    fill_database(engine, generate_petitions(10))
    for i in range(6):
        add(engine, 900 + i, LONG + "，盼复"[:i] + "甲乙丙"[: max(0, i - 3)])
    dedup = watch(engine, abridge_above=3)
    dedup.scan()
    kept = {frozenset((p.key_a, p.key_b)) for p in dedup.pairs()}
    missing = next(
        (p.key_a, p.key_b) for p in dedup.pairs(expand=True) if frozenset((p.key_a, p.key_b)) not in kept
    )
    explained = dedup.explain(*missing)
    assert explained.decision is Decision.DUPLICATE_PAIR
    assert explained.is_abridged
    assert explained.agrees
    assert explained.stored is None


def test_too_little_text_and_copies_of_it(sqlite_database: Database) -> None:
    engine = sqlite_database.engine
    fill_database(engine, generate_petitions(10))
    for key, content in ((901, "停水"), (902, "停水"), (903, "停电"), (904, ""), (905, "")):
        add(engine, key, content)
    dedup = watch(engine)
    dedup.scan()
    copies = dedup.explain("902", "901")
    assert (copies.decision, copies.distance) == (Decision.COPIES, 0)
    assert copies.row_a.copy_of == "901"
    assert copies.stored is not None
    assert copies.stored.kind == "copies"
    assert copies.agrees
    for a, b in (("901", "903"), ("904", "905"), ("901", "1")):
        short = dedup.explain(a, b)
        assert (short.decision, short.distance) == (Decision.TOO_LITTLE_TEXT, None)
        assert [column.differing_bits for column in short.columns] == [None, None]
        assert short.agrees
    assert dedup.explain("904", "905").row_a.features == 0


def test_few_edits_of_short_texts(sqlite_database: Database) -> None:
    engine = sqlite_database.engine
    fill_database(engine, generate_petitions(10))
    for key, content in (
        (901, "小区电梯停运三天无人修理"),
        (902, "小区电梯停用两天无人修里"),
        (903, "学校门口车辆乱停堵塞道路"),
    ):
        add(engine, key, content)
    dedup = watch(engine)
    dedup.scan()
    alike, unlike = dedup.explain("901", "902"), dedup.explain("901", "903")
    assert (alike.decision, alike.agrees) == (Decision.DUPLICATE_PAIR, True)
    assert [(test.name, test.value, test.limit) for test in alike.tests] == [
        ("edit_similarity", 0.75, 0.75),
        ("numbers", None, None),
    ]
    assert alike.similarities["edit_similarity"] == 0.75
    assert alike.similarities["char_overlap"] == 0
    assert [generator.name for generator in alike.generators] == ["simhash", "grams of short texts"]
    assert "edit_similarity, since both texts are short: 0.750" in "\n".join(explanation_lines(alike))
    assert (unlike.decision, unlike.agrees) == (Decision.NO_PAIR, True)
    assert [test.name for test in unlike.tests] == ["char_overlap", "numbers"]
    check = {"title": "", "content": "小区电梯停运三天无人修好"}
    assert {match.row_key for match in dedup.check(check)} == {"901", "902"}


def test_other_numbers_of_short_texts(sqlite_database: Database) -> None:
    engine = sqlite_database.engine
    fill_database(engine, generate_petitions(10))
    for key, content in ((901, "本条例自2016年5月1日起施行"), (902, "本条例自2016年3月1日起施行")):
        add(engine, key, content)
    dedup = watch(engine)
    dedup.scan()
    explained = dedup.explain("901", "902")
    assert (explained.decision, explained.agrees) == (Decision.NO_PAIR, True)
    assert [(test.name, test.passed) for test in explained.tests] == [
        ("edit_similarity", True),
        ("numbers", False),
    ]
    said = "\n".join(explanation_lines(explained))
    assert "failed  numbers: the two short texts have different numbers at the same place" in said
    assert not dedup.check({"title": "", "content": "本条例自2016年7月1日起施行"})


def test_within_decides_too(sqlite_database: Database) -> None:
    engine = sqlite_database.engine
    fill_database(engine, generate_petitions(10))
    add(engine, 901, LONG, region="城东区")
    add(engine, 902, LONG, region="城西区")
    dedup = watch(engine, within=["region", {"column": "created_at", "by": "year"}])
    dedup.scan()
    explained = dedup.explain("901", "902")
    assert explained.decision is Decision.NO_PAIR
    assert [(test.name, test.passed) for test in explained.tests] == [
        ("within", False), ("char_overlap", True)
    ]  # fmt: skip
    assert explained.row_a.within[0] == "城东区"
    assert len(explained.row_a.within) == 2


def test_composite_keys_are_json_arrays(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE letters (office VARCHAR(20), no INT, body TEXT, PRIMARY KEY (office, no))")
        )
        for office, body in (("东", LONG), ("西", LONG + "。谢谢")):
            connection.execute(text("INSERT INTO letters VALUES (:o, 7, :b)"), {"o": office, "b": body})
    dedup = Deduplicator(database.engine, "letters", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    explained = dedup.explain('["东","7"]', '["西","7"]')
    assert explained.decision is Decision.DUPLICATE_PAIR
    assert explained.agrees
    for missing in ("7", '["东"', '["东"]', '["东","8"]', '["东","x"]', json.dumps({"a": 1}), "[" * 5000):
        with pytest.raises(RowNotFoundError):
            dedup.explain('["东","7"]', missing)


def test_a_row_with_itself_is_refused(sqlite_database: Database, sample: Sample) -> None:
    dedup = scanned(sqlite_database.engine, sample)
    with pytest.raises(ConfigError, match="name two rows"):
        dedup.explain("1", "1")
