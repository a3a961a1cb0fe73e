"""The two languages of the pages."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from db_dedup.translation import LANGUAGES
from db_dedup.web import console
from db_dedup.web.console.words import catalogue, choose_language
from tests.web.console.conftest import Visitor

FOLDER = Path(str(console.__file__)).parent


def fields(words: str) -> set[str | None]:
    return {name for _, name, _, _ in Formatter().parse(words) if name is not None}


def test_the_catalogues_have_the_same_keys_and_fields() -> None:
    english, chinese = (catalogue(language) for language in LANGUAGES)
    assert list(english) == list(chinese)
    for key, words in english.items():
        assert words, key
        assert fields(words) == fields(chinese[key]), key
        assert re.search("[\u4e00-\u9fff]", chinese[key]) or key in ("list.separator", "generator.simhash")
        assert not re.search("[\u4e00-\u9fff]", words), key


def test_every_key_is_used_and_every_used_key_is_there() -> None:
    """Keys that are put together, such as kind.edited, are known by their beginnings."""
    files = [*FOLDER.glob("*.py"), *FOLDER.glob("templates/*.html")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    known = catalogue("en").keys()
    sections = {key.partition(".")[0] for key in known}
    words = set(re.findall(r"[\"']([a-z_]+\.[a-z_]+)[\"']", text))
    used = {key for key in words if key.partition(".")[0] in sections and not key.endswith(".html")}
    assert used <= known, used - known
    put_together = set(re.findall(r"(?:\w\(f?|name\()[\"']([a-z_]+)(?:\.(?:only_)?[\"{]|[\"'], )", text))
    left = {key for key in known - used if key.partition(".")[0] not in put_together}
    assert not left


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        (None, "", "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, "en-GB,zh;q=0.9", "en"),
        (None, "fr, zh-Hant;q=0.2, en;q=0.1", "zh"),
        (None, "zh;q=0, en", "en"),
        (None, "zh;q=x,,;;=", "en"),
        ("en", "zh", "en"),
        ("zh", "en", "zh"),
        ("xx", "zh", "zh"),
        (None, "*" * 100_000, "en"),
    ],
)
def test_the_language_of_a_reader(chosen: str | None, accepted: str, language: str) -> None:
    assert choose_language(chosen, accepted) == language


def test_a_link_changes_the_language(visitor: Visitor) -> None:
    page = visitor.get("/console/tables/petitions?order=newest", Accept_Language="zh")
    assert '<html lang="zh-CN">' in page.text
    assert "最新的在前" in page.text
    answer = visitor.get(page.links("/console/language")[0])
    assert answer.headers["location"] == "/console/tables/petitions?order=newest"
    english = visitor.get(answer.headers["location"], Accept_Language="zh")
    assert '<html lang="en">' in english.text
    assert "newest first" in english.text


def test_a_chinese_page_has_no_english_words(visitor: Visitor) -> None:
    visitor.cookies["db_dedup_language"] = "zh"
    groups = visitor.get("/console/tables/petitions")
    pages = [visitor.get("/console"), groups, visitor.get(groups.links("/group?row_key")[0])]
    for page in pages:
        shown = re.sub(r"<(script|kbd|title)[^>]*>.*?</\1>|<[^>]*>", " ", page.text, flags=re.DOTALL)
        words = set(re.findall("[a-zA-Z]{3,}", shown))
        allowed = {"dedup", "petitions", "title", "content", "English", "SimHash", "MinHash", "Jaccard"}
        assert words <= allowed
