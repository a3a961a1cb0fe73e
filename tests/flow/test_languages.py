"""Distinct long documents of many languages are no pairs, and lightly edited ones are."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from db_dedup.config import WatchedTable, watched_table
from db_dedup.flow.compare.long_grams import LONG
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.details import LONG_GRAMS
from db_dedup.flow.features.long_grams import LEAST_GRAMS
from db_dedup.flow.matching.match import match_table
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.progress import NullProgress
from tests.languages import LANGUAGES, Writer

WATCHED = watched_table("texts", {"columns": {"text": 1}})
BY_THREE = watched_table("texts", {"columns": {"text": 1}, "long_grams": False})
IN_LETTERS = [name for name, language in LANGUAGES.items() if language.has_long_grams]


def alike(texts: Sequence[str], watched: WatchedTable = WATCHED) -> set[tuple[int, int]]:
    """All pairs that the measure confirms, whether a candidate generator finds them or not."""
    left, right = np.array(list(combinations(range(len(texts)), 2)), np.int32).T
    rows = Fingerprinter(watched.recipe).fingerprint([(text,) for text in texts])
    confirmed, _, _ = Rule(watched.rule.setting).confirm(rows.compared([None] * len(texts)), left, right)
    return set(zip(left[confirmed].tolist(), right[confirmed].tolist(), strict=True))


def found(texts: Sequence[str]) -> set[tuple[int, int]]:
    """All pairs that a scan finds, exact duplicates included."""
    rows = Fingerprinter(WATCHED.recipe).fingerprint([(text,) for text in texts])
    table = rows.compared([None] * len(texts))
    matches = match_table(table, Rule(WATCHED.rule.setting), 1000, NullProgress())
    classes = np.where(matches.copy_of < 0, np.arange(len(texts)), matches.copy_of).tolist()
    pairs = set(zip(matches.pairs.left.tolist(), matches.pairs.right.tolist(), strict=True))
    return {
        (i, j)
        for i, j in combinations(range(len(texts)), 2)
        if classes[i] == classes[j] or (classes[i], classes[j]) in pairs or (classes[j], classes[i]) in pairs
    }


def documents(name: str, count: int, length: int) -> tuple[Writer, list[str]]:
    writer = Writer(name)
    return writer, [writer.document(length) for _ in range(count)]


@pytest.mark.parametrize("name", LANGUAGES)
def test_distinct_documents_are_no_pairs(name: str) -> None:
    writer = Writer(name)
    texts = [writer.document(length) for length in (*[4000] * 10, *[1000] * 6, *[300] * 6)]
    assert alike(texts) == set()
    # Without long grams there are many pairs, or none where a character says more than a letter.
    assert (len(alike(texts, BY_THREE)) > 10) is LANGUAGES[name].has_long_grams


@pytest.mark.parametrize("length", [100, 300, 1500])
@pytest.mark.parametrize("name", LANGUAGES)
def test_edited_documents_are_found(name: str, length: int) -> None:
    writer, texts = documents(name, 20, length)
    changed = [
        edited
        for text in texts
        for edited in (*(writer.edited(text, count) for count in (1, 5, 10)), writer.reordered(text))
    ]
    pairs = found([*texts, *changed])
    assert [i for i in range(len(changed)) if (i // 4, len(texts) + i) not in pairs] == []


@pytest.mark.parametrize("name", LANGUAGES)
def test_parts_of_documents_are_found(name: str) -> None:
    """The first half of a text, and a text quoted in a longer one, also with a few edits."""
    writer, texts = documents(name, 10, 600)
    halves = [writer.edited(text[: len(text) // 2], 2) for text in texts]
    around = [writer.document(1500) for _ in texts]
    quoting = [
        f"{one[:700]} {writer.edited(text, 2)} {one[700:]}" for one, text in zip(around, texts, strict=True)
    ]
    pairs = found([*texts, *halves, *quoting])
    assert {(i, 10 + i) for i in range(10)} <= pairs
    assert {(i, 20 + i) for i in range(10)} <= pairs


@pytest.mark.parametrize("names", [["English", "Chinese"], ["Ukrainian", "Korean"], ["Arabic", "Japanese"]])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_mixed_documents(names: Sequence[str], share: float) -> None:
    """Rows with paragraphs in two scripts: edits of either are found, and distinct rows are no pairs."""
    first, second = (Writer(name) for name in names)
    texts = [
        f"{first.document(int(2000 * share))} {second.document(int(2000 * (1 - share)))}" for _ in range(8)
    ]
    texts += [f"{first.document(300)} {second.document(100)}" for _ in range(8)]
    edited = [first.edited(second.edited(text, 5), 5) for text in texts]
    assert found([*texts, *edited]) == {(i, 16 + i) for i in range(16)}


@pytest.mark.parametrize("name", IN_LETTERS)
@pytest.mark.parametrize("count", [LEAST_GRAMS, LONG])
def test_texts_on_either_side_of_a_border_are_found(name: str, count: int) -> None:
    """The last text that has too few long grams, and the first that has enough, whole and edited."""
    writer = Writer(name)
    text = writer.document(250)
    cut = [text[:length] for length in range(10, len(text))]
    counts = (
        Fingerprinter(WATCHED.recipe).fingerprint([(each,) for each in cut]).details.counts[LONG_GRAMS::3]
    )
    over = int(np.argmax(counts >= count))
    assert counts[over - 1] < count <= counts[over]
    whole = [cut[over - 1], cut[over], cut[over + 2], cut[over - 2]]
    edited = [writer.edited(each, 5) for each in whole] if count == LONG else []
    pairs = alike([*whole, *edited])
    assert {(i, j) for i, j in combinations(range(4 + len(edited)), 2) if i < 4} <= pairs
