"""The Chinese pages say what the English ones say."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CHINESE = DOCS / "zh-CN"
ENGLISH = [
    ROOT / "README.md",
    DOCS / "README.md",
    DOCS / "quickstart.md",
    *sorted(DOCS.glob("how-to/*.md")),
    *sorted(DOCS.glob("reference/*.md")),
]
ONLY_ENGLISH = {DOCS / "how-to/release.md": "for maintainers, who work in English"}
TRANSLATED_CODE = {DOCS / "reference/cli.md": "tests/test_docs.py compares it with the help of the commands"}
ONLY_CHINESE = {CHINESE / "README.md": "\n## 其他用词\n"}  # the last section: words and their English
PAGES = [page for page in ENGLISH if page not in ONLY_ENGLISH]

CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENTS = {"sh": r"\s*#.*$", "toml": r"\s*#.*$", "python": r"\s*#.*$", "sql": r"\s*--.*$"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
TIMES = {"million": 1_000_000, "万": 10_000}


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def in_chinese(page: Path) -> Path:
    """Where the translation of an English page is, or would be."""
    return CHINESE / page.relative_to(DOCS) if page.is_relative_to(DOCS) else page.with_suffix(".zh-CN.md")


TO_ENGLISH = {in_chinese(page): page for page in ENGLISH}


def relative(target: Path, page: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def switch(page: Path) -> str:
    """The line below the title, which leads to the other language."""
    if page in TO_ENGLISH:
        return f"[English]({relative(TO_ENGLISH[page], page)}) · 简体中文"
    return f"English · [简体中文]({relative(in_chinese(page), page)})"


def body(page: Path) -> str:
    text = read(page).replace(f"\n\n{switch(page)}\n", "\n", 1)
    return text.partition(ONLY_CHINESE[page])[0] if page in ONLY_CHINESE else text


def prose(text: str) -> str:
    return CODE.sub("", text)


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ .+$", prose(read(page)), re.MULTILINE)


def sections(page: Path) -> list[str]:
    """The text without code blocks, one part for each heading."""
    text = prose(body(page))
    starts = [match.start() for match in re.finditer(r"^#+ ", text, re.MULTILINE)]
    return [text[a:b] for a, b in pairwise([*starts, len(text)])]


def code(page: Path) -> list[tuple[str, str]]:
    """The code blocks: their comments are translated."""
    return [
        (language, re.sub(COMMENTS.get(language, r"(?!)"), "", text, flags=re.MULTILINE))
        for language, text in CODE.findall(body(page))
    ]


def numbers(text: str) -> list[str]:
    """Numbers of two digits or more: smaller ones may be written as words."""
    found = re.findall(r"(\d(?:[\d,.]*\d)?) ?(million|万)?", text)
    large = [(number, unit) for number, unit in found if unit or len(number) > 1]
    return [f"{float(n.replace(',', '')) * TIMES[unit]:.0f}" if unit else n for n, unit in large]


def level(section: str) -> list[str]:
    """The marks of its heading, with the number of a step."""
    return re.findall(r"\A#+ (?:\d\.)?", section)


def rows(text: str) -> list[tuple[list[list[str]], list[str]]]:
    """Of each row of a table the code in each cell that has some, and the numbers of the row."""
    return [
        (
            [sorted(found) for cell in line.split("|") if (found := re.findall(r"`([^`]+)`", cell))],
            sorted(numbers(line)),
        )
        for line in re.findall(r"^\|.*\|$", text, re.MULTILINE)
    ]


def inline_code(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def anchors(page: Path) -> list[str]:
    """What the headings are called in a link."""
    titles = [heading.lstrip("#").strip() for heading in headings(page)]
    return [re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles]


def destination(link: str, page: Path) -> str:
    """Where a link leads, whatever the language: the English page and the number of the heading."""
    if "://" in link:
        return link
    name, _, anchor = link.partition("#")
    linked = (page.parent / name).resolve() if name else page
    heading = anchors(linked).index(anchor) if anchor else ""
    return f"{TO_ENGLISH.get(linked, linked).relative_to(ROOT)}#{heading}"


def destinations(text: str, page: Path) -> Counter[str]:
    return Counter(destination(link, page) for link in LINK.findall(text))


TRANSLATED = pytest.mark.parametrize(
    "english",
    [page for page in PAGES if in_chinese(page).is_file()],
    ids=lambda page: str(page.relative_to(ROOT)),
)


def test_every_page_is_translated() -> None:
    missing = [str(page.relative_to(ROOT)) for page in PAGES if not in_chinese(page).is_file()]
    assert missing == [], "translate them, or name them in ONLY_ENGLISH"
    assert [page for page in ONLY_ENGLISH if in_chinese(page).exists()] == []
    assert [page for page in CHINESE.rglob("*.md") if page not in TO_ENGLISH] == []


@TRANSLATED
def test_both_languages_say_the_same(english: Path) -> None:
    chinese = in_chinese(english)
    assert code(chinese) == code(english) or english in TRANSLATED_CODE
    parts, translated = sections(english), sections(chinese)
    assert [level(part) for part in translated] == [level(part) for part in parts]
    for part, other in zip(parts, translated, strict=True):
        assert rows(other) == rows(part)
        assert set(numbers(other)) == set(numbers(part)), part
        assert inline_code(other) == inline_code(part), part
        assert destinations(other, chinese) == destinations(part, english), part


@TRANSLATED
def test_each_page_leads_to_the_other_language(english: Path) -> None:
    for page in (english, in_chinese(english)):
        assert read(page).split("\n")[2] == switch(page)


@TRANSLATED
def test_chinese_pages_link_to_chinese_ones(english: Path) -> None:
    page = in_chinese(english)
    names = [link.partition("#")[0] for link in LINK.findall(body(page)) if "://" not in link]
    wrong = [name for name in names if (page.parent / name).resolve() in PAGES]
    assert wrong == []


@TRANSLATED
def test_chinese_is_set_as_chinese(english: Path) -> None:
    """Full-width punctuation after Chinese, and a blank between Chinese and Latin."""
    text = LINK.sub("]", re.sub(r"`[^`\n]+`", "X", prose(body(in_chinese(english)))))
    assert re.findall(r".{0,9}[一-鿿][A-Za-z0-9].{0,9}|.{0,9}[A-Za-z0-9][一-鿿].{0,9}", text) == []
    assert re.findall(r".{0,9}[一-鿿][,;:?!.()].{0,9}|.{0,9}[,;:?!()][一-鿿].{0,9}", text) == []
