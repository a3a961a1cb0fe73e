"""Spellings that Unicode keeps apart: which of them are the same text, and which words are left alone."""

from __future__ import annotations

import re
import unicodedata
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from db_dedup.flow.text import normalise
from db_dedup.flow.text.normalise import NORMALISERS, fold_batch, normalise_batch
from db_dedup.flow.text.variants import NUMERALS, REACH, UNITS, simplified_characters, write_digits
from tests.flow.make_simplified import TABLE, content
from tests.lengths import LONG, NOT_THE_SQUARE

NEAR_NUMERALS = st.text(sorted({*REACH, *"0123456789.,/ax *日记的\n "}), max_size=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("臺灣後來的徵收補償", "台湾后来的征收补偿"),
        ("小區內停車位不足，沒有結果", "小区内停车位不足,没有结果"),
        ("后来的王后，干净", "后来的王后,干净"),
        ("著名的土著", "著名的土著"),
        ("ｶﾞｽ代ﾊﾟﾝｺ", "ガス代パンコ"),
        ("cafe\u0301 が か\u3099", "café が が"),
        ("مُحَمَّدٌ الـقـاهرة", "محمد القاهرة"),
        ("آب ا\u0653ب أ ا\u0654", "آب آب أ أ"),
        ("ا\u0657\u0654 ا\u0640\u0654", "أ أ"),
    ],
)
def test_spellings_of_one_text(text: str, expected: str) -> None:
    assert normalise_batch([text]) == [expected]


def test_values_keep_all_but_case_and_width() -> None:
    values = ["後來", "三千五百元", "二〇二四年三月五日", "مُحَمَّد"]
    assert fold_batch(values) == values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("二〇二四年三月五日", "2024年3月5日"),
        ("二零二四年十二月三十一号", "2024年12月31号"),
        ("二○二四年", "2024年"),
        ("2024年三月", "2024年3月"),
        ("3月五日", "3月5日"),
        ("一月一日", "1月1日"),
        ("十二日", "12日"),
        ("三月份 十二月底 五月中旬", "3月份 12月底 5月中旬"),
        ("三千五百元", "3500元"),
        ("叁仟伍佰元整", "3500元整"),
        ("參仟伍佰圓", "参仟伍佰圆"),
        ("貳萬元", "20000元"),
        ("三万五千元 3.5万元 35千元", "35000元 35000元 35000元"),
        ("一亿三千万元", "130000000元"),
        ("三万零五百元", "30500元"),
        ("一千零五元", "1005元"),
        ("二百十五元 十五元 十万元", "215元 15元 100000元"),
        ("两百美元 十元", "200美元 10元"),
        ("五元。三元钱 一块钱", "5元。3元钱 1块钱"),
        ("罚款，三千元", "罚款,3000元"),
    ],
)
def test_numbers_of_dates_and_amounts(text: str, expected: str) -> None:
    assert normalise_batch([text]) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "一些",
            "三三两两",
            "万一",
            "一月的问题",
            "三月天",
            "统一月份",
            "一日三餐",
            "李四日前",
            "统一号码",
            "十二号召",
        ),
        *(
            "三元里",
            "一元化",
            "二元一次方程",
            "五元组",
            "百元",
            "万元户",
            "状元",
            "三角形",
            "一块儿",
            "三千人",
            "五年",
        ),
        *(
            "数十万元",
            "几十元",
            "五六百元",
            "一百二元",
            "三万五元",
            "三千五元",
            "十七八元",
            "百八十元",
            "第十二号",
        ),
        *(
            "1,234万元",
            "0.00001万元",
            "3三千元",
            "3,三千元",
            "三点五万元",
            "四十五日",
            "十三月底",
            "二四年",
        ),
        *("http://三千元", "www.三千元", "第一百二十条"),
    ],
)
def test_words_and_vague_numbers_stay(text: str) -> None:
    assert write_digits(text) == text


def test_each_number_of_an_amount_comes_back() -> None:
    """Spelt by a second method, digit by digit."""
    numbers = [
        *range(11, 3_000),
        *range(3_000, 100_000, 37),
        *(10**n + d for n, d in product(range(4, 12), (0, 1, 10))),
    ]
    assert [write_digits(f"{spelt(n)}元") for n in numbers] == [f"{n}元" for n in numbers]


def spelt(number: int) -> str:
    parts: list[str] = []
    for exponent, digit in zip(range(len(str(number)) - 1, -1, -1), str(number), strict=True):
        if digit != "0":
            parts.append("零一二三四五六七八九"[int(digit)] + ("", "十", "百", "千")[exponent % 4])
        elif parts and parts[-1] != "零":
            parts.append("零")
        if exponent in (4, 8):
            is_zero = parts[-1] == "零"
            parts[-1:] = [] if is_zero else parts[-1:]
            if exponent == 8 or parts[-1] != "亿":
                parts.append("万" if exponent == 4 else "亿")
            parts += ["零"] if is_zero else []
    return "".join(parts).rstrip("零")


def test_the_table_is_opencc_s() -> None:
    """Rather than a changed table, a new recipe version: digests depend on it."""
    assert TABLE.read_text("utf-8") == content()


def test_simplified_characters_stay() -> None:
    table = simplified_characters()
    assert not set(table.values()) & set(table)
    assert len(table) > 2_500
    changed = [c for c in map(chr, table) if unicodedata.normalize("NFKC", c) != c]
    assert changed == []


def test_the_signs_of_numerals_are_simplified() -> None:
    assert not {*map(ord, REACH)} & set(simplified_characters())
    assert {*NUMERALS, *UNITS} <= {*REACH}


@given(NEAR_NUMERALS)
@settings(max_examples=500)
@example("*xx")
def test_a_number_in_digits_is_not_converted_again(text: str) -> None:
    """But two masks beside each other, "*" and "xx", become one."""
    once = normalise_batch([text])
    assert normalise_batch(once) == [re.sub(r"\*+", "*", once[0])]


@given(st.lists(NEAR_NUMERALS, max_size=6), st.sampled_from(NORMALISERS))
def test_no_row_changes_another(batch: list[str], normaliser: str) -> None:
    assert normalise_batch(batch, normaliser) == [normalise_batch([text], normaliser)[0] for text in batch]


@given(
    st.lists(st.sampled_from([*REACH, *"的后後的萬天地 在3.,", "二〇二四年三月五日", "三千五百元"])).map(
        "".join
    )
)
@settings(max_examples=500)
def test_pieces_give_what_the_whole_gives(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalise, "_BATCH_CHARACTERS", 4)
        in_pieces = normalise_batch([text])
    assert in_pieces == normalise_batch([text])


@NOT_THE_SQUARE
@pytest.mark.parametrize(
    "part",
    [
        "一二三四五六七八九",
        "三千",
        "十",
        "三千五百元",
        "十二日",
        "1.5万",
        "3百",
        "二〇二四年",
        "十月十",
        "一,",
    ],
)
def test_numerals_without_end_take_linear_time(part: str) -> None:
    # A normaliser gives them no more than a piece of a long text.
    assert write_digits(part * (LONG // len(part)) + "元")
