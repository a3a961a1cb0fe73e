"""Rows that are mixed with a key are as alike as their texts, and contain none of them."""

from __future__ import annotations

import numpy as np
import pytest

from db_dedup.config import watched_table
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.details import CHARACTERS, PLACES
from db_dedup.flow.keyed_rows import KeyedRow, have_other_numbers, keyed_row, pack, unpack
from db_dedup.flow.matching.match import pairs_between
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter, joined_rows
from db_dedup.sample import generate_petitions

KEY, OTHER_KEY = bytes(range(16)), bytes(range(1, 17))
SHORT = [
    "2号楼停水三天了",
    "3号楼停水三天了",
    "2号楼停水3天了",
    "二号楼停水三天",
    "2号楼停水三天啦",
    "停水三天了，2号楼",
    "路灯坏了三个月",
    "路灯坏了三个多月",
    "城东区解放路积水",
    "城西区解放路积水",
    "解放路小学门口积水",
    "解方路小学门口积水",
    "dongfang小区停水",
    "dongfeng小区停水",
    "关于2016年的通知",
    "关于2019年的通知",
    "",
]
SETTINGS = watched_table("t", {"columns": {"title": 1, "content": 1}})
RULE = Rule(SETTINGS.setting)
PAIR = tuple[int, float, int]


def fingerprinted(rows: list[tuple[str, str]]) -> FingerprintedRows:
    return Fingerprinter(SETTINGS.recipe).fingerprint(rows)


def keyed(done: FingerprintedRows, key: bytes = KEY) -> list[KeyedRow]:
    """All rows, through their bytes."""
    return [unpack(pack(keyed_row(done, i, None, key), key))[0] for i in range(len(done.digests))]


def pairs_of(done: FingerprintedRows) -> dict[tuple[int, int], PAIR]:
    rows = done.compared([None] * len(done.digests))
    all_rows = np.flatnonzero(done.has_fingerprint).astype(np.int32)
    found = pairs_between(rows, RULE, all_rows, all_rows)
    columns = (found.left, found.right, found.distances, found.similarities, found.kinds)
    return {
        (a, b): (distance, similarity, kind)
        for a, b, distance, similarity, kind in zip(*(column.tolist() for column in columns), strict=True)
        if a < b
    }


def keyed_pairs(rows: list[KeyedRow]) -> dict[tuple[int, int], PAIR]:
    found = pairs_of(joined_rows([row.done for row in rows]))
    return {
        (a, b): pair
        for (a, b), pair in found.items()
        if not have_other_numbers(rows[a].numbers, rows[b].numbers)
    }


def test_petitions_are_as_alike_as_before() -> None:
    sample = generate_petitions(60, seed=3, duplicate_share=0.6)
    done = fingerprinted([(petition.title, petition.content) for petition in sample.petitions])
    expected = pairs_of(done)
    assert len(expected) > 20
    assert len({kind for _, _, kind in expected.values()}) > 1
    assert keyed_pairs(keyed(done)) == expected


def test_short_texts_are_as_alike_as_before() -> None:
    done = fingerprinted([(text, "") for text in SHORT])
    expected = pairs_of(done)
    assert (0, 3) in expected
    assert (0, 1) not in expected
    assert (14, 15) not in expected
    rows = keyed(done)
    assert keyed_pairs(rows) == expected
    assert set(pairs_of(joined_rows([row.done for row in rows]))) > set(expected)


def hashes_of(done: FingerprintedRows) -> tuple[set[int], set[int], set[int]]:
    """Return the hashes of 3-grams, the characters and the place names of one row."""
    characters, places = done.details.of(0, CHARACTERS)[1:], done.details.of(0, PLACES)
    return set(done.features.hashes.tolist()), set(characters.tolist()), set(places.tolist())


def test_another_key_gives_other_hashes() -> None:
    done = fingerprinted([("解放路小学门口积水", "2号楼")])
    (plain,), (other,) = keyed(done), keyed(done, OTHER_KEY)
    for part in range(3):
        values = [hashes_of(one)[part] for one in (done, plain.done, other.done)]
        assert all(values)
        assert not values[0] & values[1]
        assert not values[1] & values[2]
    assert plain.done.digests == done.digests


@pytest.mark.parametrize("within", ["城东区", None])
def test_what_rows_must_share_is_kept_as_a_hash(within: str | None) -> None:
    done = fingerprinted([("题目", "内容")])
    row, key = unpack(pack(keyed_row(done, 0, within, KEY), KEY))
    assert key == KEY
    assert row.within == keyed_row(done, 0, within, KEY).within
    if within is not None:
        assert row.within != keyed_row(done, 0, "城西区", KEY).within
        assert within not in str(row.within)
