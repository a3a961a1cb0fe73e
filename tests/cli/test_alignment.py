"""Stretches of two texts: complete, in order, and found quickly in long texts."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.present import alignment
from db_dedup.present.alignment import align
from db_dedup.present.side_by_side import MOST_DIFFERENCES, mark_differences

words = st.lists(st.sampled_from(["路灯坏了请尽快修", "停水", "a", "b", "哈" * 40, "的"]), max_size=40).map(
    "".join
)


def cuts_a_word(text: str, place: int) -> bool:
    return re.fullmatch("[a-z]{2}", text[max(0, place - 1) : place + 1]) is not None


def check(left: str, right: str, reach: int | None = None) -> list[tuple[str, str]]:
    """What differs, after a look at all of it."""
    a = b = 0
    differing = []
    for stretch in align(left, right, reach):
        assert (stretch.left, stretch.right) == (a, b)
        assert not cuts_a_word(left, a)
        assert not cuts_a_word(right, b)
        a, b = stretch.left_end, stretch.right_end
        one, other = left[stretch.left : a], right[stretch.right : b]
        assert one or other
        assert (one == other) is stretch.is_common
        if not stretch.is_common:
            differing.append((one, other))
    assert (a, b) == (len(left), len(right))
    return differing


@pytest.mark.parametrize(
    ("left", "right", "marked_left", "marked_right"),
    [
        ("The cat sat on the mat.", "The dog sat on a mat.",
         "The [-cat-] sat on [-the-] mat.", "The {+dog+} sat on {+a+} mat."),
        ("We don't know yet", "We won't know yet", "We [-don't-] know yet", "We {+won't+} know yet"),
        ("one two three", "four five six", "[-one two three-]", "{+four five six+}"),
        ("Встреча в пятницу", "Встреча в пятницах", "Встреча в [-пятницу-]", "Встреча в {+пятницах+}"),
        ("안녕하세요 세상", "안녕히 세상", "[-안녕하세요-] 세상", "{+안녕히+} 세상"),
        ("cafe\u0301 au lait", "cafe au lait", "[-cafe\u0301-] au lait", "{+cafe+} au lait"),
        ("路灯坏了三天请修", "路灯坏了五天请修", "路灯坏了[-三-]天请修", "路灯坏了{+五+}天请修"),
        ("カメラを買う", "カメラを売る", "カメラを[-買う-]", "カメラを{+売る+}"),
        ("我的iPhone手机坏了12天", "我的iPad手机换了13天",
         "我的[-iPhone-]手机[-坏-]了[-12-]天", "我的{+iPad+}手机{+换+}了{+13+}天"),
    ],
)  # fmt: skip
def test_words_are_marked_whole_and_ideographs_one_by_one(
    left: str, right: str, marked_left: str, marked_right: str
) -> None:
    found = mark_differences(left, right, colour=False)
    assert [text.plain for text in found] == [marked_left, marked_right]
    around = long_text(2_000)  # as in a text of many pages
    found = mark_differences(f"{around}。{left}。{around}", f"{around}。{right}。{around}", False, full=True)
    assert [text.plain for text in found] == [
        f"{around}。{marked}。{around}" for marked in (marked_left, marked_right)
    ]


def test_the_ends_of_long_stretches_cut_no_word() -> None:
    common = " ".join(f"word{i}" for i in range(500))
    assert check(f"{common} internationalisation", f"{common} internationalism") == [
        ("internationalisation", "internationalism")
    ]
    endless = "x" * 5_000  # no word is as long
    left, _ = mark_differences(f"{endless}a", f"{endless}b", colour=False, full=True)
    assert left.plain == f"{endless}[-a-]"


@given(words, words)
def test_stretches_are_the_texts(left: str, right: str) -> None:
    check(left, right)
    with pytest.MonkeyPatch.context() as patch:  # as texts of many pages are compared
        patch.setattr(alignment, "_SHORT", 8)
        patch.setattr(alignment, "_ANCHOR", 3)
        patch.setattr(alignment, "_BLOCK", 5)
        check(left, right)
        check(left, right, 16)
        for cut in (left[3:], f"{left}b", f"a{left[:-2]}"):
            check(left, cut)


def long_text(length: int) -> str:
    draw = random.Random(4)
    return "".join(chr(draw.randrange(0x4E00, 0x5200)) for _ in range(length))


def test_the_differences_of_long_texts() -> None:
    text = long_text(600_000)
    other = text[:1_000] + "甲" + text[1_000:300_000] + text[350_000:400_000] + "乙丙" + text[400_007:]
    assert check(text, other) == [("", "甲"), (text[300_000:350_000], ""), (text[400_000:400_007], "乙丙")]
    assert check(text, text) == []
    assert check(text, "") == [(text, "")]
    assert check(text, text[::-1], reach=10_000) != []


def test_what_is_shown_of_long_texts() -> None:
    text = long_text(600_000)
    other = text[:300_000] + "甲" * 5_000 + text[300_000:]
    left, right = mark_differences(text, other, colour=False)
    assert len(left.plain) < 200
    assert "… 299,940 characters …" in left.plain
    assert "甲{+" not in right.plain
    assert "… 4,200 characters …" in right.plain
    assert len(right.plain) < 1_200
    assert mark_differences(text, other, colour=False, full=True)[0].plain == text


def test_only_the_first_of_many_differences_are_shown() -> None:
    text = long_text(200_000)
    other = "".join("甲" + text[i + 1 : i + 1_000] for i in range(0, 200_000, 1_000))
    left, right = mark_differences(text, other, colour=False)
    assert left.plain.count("[-") == right.plain.count("{+甲+}") == MOST_DIFFERENCES
    assert left.plain.endswith(f" … {200_000 - 1_000 * MOST_DIFFERENCES:,} characters … ")
    full = mark_differences(text, other, colour=False, full=True)[1].plain
    assert full.count("{+甲+}") == 200
