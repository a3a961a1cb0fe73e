"""What former versions computed is written down here and may never change: labels are found by it."""

from __future__ import annotations

from typing import Any

import pytest

from db_dedup.config import WatchedTable, watched_table
from db_dedup.flow import former_digests
from db_dedup.flow.former_digests import digest_as_of
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.records import SourceRow
from db_dedup.records.recipe import RECIPE_VERSION

VALUES = [
    (
        "夜间施工噪音扰民",
        "详见 https://example.com/a/b?c=1 ，举报人张XX，身份证*********，哈哈哈哈哈哈",
        "https://office.example/petitions/1",
    ),
    ("ＵＲＬ与掩码", "RT @name: 路灯不亮 //@other: 转发", "138****5678"),
    ("Street light broken", "The STREET light on Long Road", "@1380000 XXXX"),
    ("小區停車難", "小區內停車位不足\r\n沒有結果", ""),
    ("二〇二四年三月五日的來信", "罚款叁仟伍佰元，3万元。مَـدرسة", "三千五百元 مَـدرسة 後"),
]
WITHIN = ["a", None, "b", "c", None]

# Each was printed by the release that had the version.
GOLDEN = {
    (1, "plain"): [
        "3f17351efef74b9ee4722ae87ff1c936",
        "a95544e7dacc9f3a25c9f7dc5fa72b85",
        "eeb791cd3ac135cf78d6e34350fced66",
        "197a144771cafd538080231ced525af7",
        "528db9be68e2e08e5fe0b5a35fd3103d",
    ],
    (1, "tweet"): [
        "3f17351efef74b9ee4722ae87ff1c936",
        "be01d74863055b9e9b0791ab8dee0d45",
        "eeb791cd3ac135cf78d6e34350fced66",
        "197a144771cafd538080231ced525af7",
        "528db9be68e2e08e5fe0b5a35fd3103d",
    ],
    (2, "plain"): [
        "b90ef5ee1d478d6f9c7b4b4d09b33169",
        "9758442c70b95093498235a4e9a63af1",
        "c51dee2547b797b7f289add6fef9da13",
        "197a144771cafd538080231ced525af7",
        "528db9be68e2e08e5fe0b5a35fd3103d",
    ],
    (2, "tweet"): [
        "b90ef5ee1d478d6f9c7b4b4d09b33169",
        "dafe8dd01693eb0aa5ac59310b1a5d97",
        "c51dee2547b797b7f289add6fef9da13",
        "197a144771cafd538080231ced525af7",
        "528db9be68e2e08e5fe0b5a35fd3103d",
    ],
    (3, "plain"): [
        "b90ef5ee1d478d6f9c7b4b4d09b33169",
        "9758442c70b95093498235a4e9a63af1",
        "c51dee2547b797b7f289add6fef9da13",
        "89ba8d54bcf71afc0985bef9fbe1d31e",
        "81898dee34bb9af8746b00474bc1b904",
    ],
    (3, "tweet"): [
        "b90ef5ee1d478d6f9c7b4b4d09b33169",
        "dafe8dd01693eb0aa5ac59310b1a5d97",
        "c51dee2547b797b7f289add6fef9da13",
        "89ba8d54bcf71afc0985bef9fbe1d31e",
        "81898dee34bb9af8746b00474bc1b904",
    ],
}


def settings(normaliser: str) -> WatchedTable:
    columns: dict[str, Any] = {"title": 2, "content": {"kind": "text"}, "link": {"kind": "value"}}
    return watched_table("t", {"columns": columns, "normaliser": normaliser, "within": "region"})


def rows() -> list[SourceRow]:
    return [SourceRow(str(i), None, row, WITHIN[i]) for i, row in enumerate(VALUES)]


@pytest.mark.parametrize(("version", "normaliser"), GOLDEN)
def test_golden_digests(version: int, normaliser: str) -> None:
    found = digest_as_of(version, settings(normaliser).recipe, rows())
    assert [digest.hex() for digest in found] == GOLDEN[version, normaliser]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_posts_are_cleaned_as_they_were(version: int) -> None:
    """These words were taken for forms until version 3."""
    post = ("请大家转发微博支持", "mail a@b.com, I was retweeted by Obama", "")
    recipe, row = settings("tweet").recipe, SourceRow("0", None, post, None)
    [digest] = digest_as_of(version, recipe, [row])
    assert digest.hex() == "3cc88b15390ea9268a9682b759bfefaf"
    assert digest_as_of(RECIPE_VERSION, recipe, [row]) != [digest]


def test_every_former_version_is_known() -> None:
    """Whoever raises RECIPE_VERSION adds what the version before computed, with golden values here."""
    assert list(former_digests._FORMER) == list(range(1, RECIPE_VERSION))
    assert {version for version, _ in GOLDEN} == set(range(1, RECIPE_VERSION))


@pytest.mark.parametrize("normaliser", ["plain", "tweet"])
def test_today_s_version_is_the_fingerprinter_s(normaliser: str) -> None:
    watched = settings(normaliser)
    assert (
        digest_as_of(RECIPE_VERSION, watched.recipe, rows())
        == Fingerprinter(watched.recipe).fingerprint(VALUES, WITHIN).digests
    )


def test_a_digest_needs_no_feature() -> None:
    """No label is on a row without one; but its digest must not pass for another's."""
    silent = [SourceRow(str(i), None, (text, "", ""), None) for i, text in enumerate(["。", "！"])]
    one, other = digest_as_of(RECIPE_VERSION, settings("plain").recipe, silent)
    assert one != other
