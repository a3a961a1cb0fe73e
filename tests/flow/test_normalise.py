"""One text, one spelling: whole batches must come out as the plain rules say, row by row."""

import re
import unicodedata
from itertools import groupby

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from db_dedup.flow.text.normalise import NORMALISERS, fold_batch, normalise_batch
from db_dedup.flow.text.variants import simplified_characters, strip_arabic_marks, write_digits

INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))
PIECES = [
    *"aeXx*卡か가각각ㄱﾡｶﾞßſΣςİıǅﬃ①½…Å\u0301\u0308\u0323\u0345\u3099\u200b\u200d\ufeff\u00ad",
    *("\r\n", "\n", "\r", "\v", "\x1f", "\x85", "\u2028", "\u00a0", "\u3000", " ", "  "),
    *(
        "\ud800",
        "\udfff",
        "🙂",
        "𝔸",
        "𐐀",
        "\U00011099\U000110ba",
        "哈哈哈哈哈",
        "！！！！",
        "0000",
        "１００００",
    ),
    *("http://", "https://", "www.", "WWW.", "ｈttp://", "a.b/c?d=e", "xxxx", "XX", "ⅹⅹ", "***", "＊＊"),
    *(
        "萬",
        "後后",
        "二〇二四",
        "三",
        "十二",
        "千",
        "五百",
        "年",
        "月",
        "日",
        "号",
        "元",
        "数",
        "第",
        "钱",
        ",",
        "3",
    ),
    *("ا", "\u0654", "\u064e", "\u0651", "\u0640", "\u0657", "ﹷ", "ﻼ"),
    *("@name", "RT", "rt @a:", "RT@b：", "//@c:", "回复", "转发微博", "Retweeted by ", "via @d"),
]
texts = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def plain(text: str) -> str:
    """The rules of the plain normaliser, one after the other."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = strip_arabic_marks(text.translate(INVISIBLE)).translate(simplified_characters())
    text = re.sub(r"(https?://|www\.)[^\s\u3000-\u9fff\uff00-\uffef]+", " ", text)
    text = "".join("*" if c == "*" else "".join(run) for c, run in groupby(text))
    text = re.sub(r"(^|[^a-z0-9])xx+(?=$|[^a-z0-9])", r"\1*", text)
    text = "".join(shortened(c, len(list(run))) for c, run in groupby(text))
    return " ".join(write_digits(text).split())


def shortened(character: str, length: int) -> str:
    return character * (length if character.isdecimal() or character.isspace() else min(length, 3))


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0344", "\U0001d165\u0301", "\u0f71\u0f72"])
@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_marks_without_end_are_cut(marks: str, normaliser: str) -> None:
    """Composing them takes time with the square of their number."""
    [text, neighbour] = normalise_batch(["停水a" + marks * 1_000_000 + "三天", "é😀"], normaliser)
    assert text.startswith("停水")
    assert text.endswith("三天")
    assert len(text) < 70
    assert neighbour == "é😀"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rt: " * 300_000, ""),
        ("@a " * 500_000, ""),
        (" \u3000" * 500_000 + "@", "@"),
        ("@" * 1_000_000, "@@@"),
    ],
)
def test_a_tweet_of_nothing_but_forms(text: str, expected: str) -> None:
    """One pass over it, not one for each of them."""
    assert normalise_batch([text], "tweet") == [expected]


@given(st.lists(texts, max_size=8))
@example(["\u0301e", "e", "\u0301", "e\u0301"])
@example(["\u1161\u11a8", "\u1100", "\u1161", "\u1100\u1161", "\uac00\u11a8"])
@example(["a\r\nb", "\u00a0\u3000", "", "\n"])
@example(["e\u200b\u0301", "x\u200bx", "*\ufeff*"])
@example(["\ud800", "\udfff\ud800", "中\ud83d"])
@example(["xx*xx", "*xx*xx*xx*", "1xx xx2 xx", "xxhttp://xx"])
@settings(max_examples=300)
def test_a_batch_follows_the_rules_row_by_row(batch: list[str]) -> None:
    assert normalise_batch(batch) == [plain(text) for text in batch]


@given(st.lists(texts, max_size=8))
@example(["https://a.b/c", "138****5678", "XXXX", "哈哈哈哈哈", " a\r\nb "])
def test_folding_leaves_all_but_the_spelling(batch: list[str]) -> None:
    spelt = [unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", t).casefold()) for t in batch]
    assert fold_batch(batch) == [" ".join(text.translate(INVISIBLE).split()) for text in spelt]


@given(st.lists(texts, max_size=8), st.sampled_from(NORMALISERS))
def test_no_row_changes_another(batch: list[str], normaliser: str) -> None:
    assert normalise_batch(batch, normaliser) == [normalise_batch([text], normaliser)[0] for text in batch]


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_nor_do_many_rows(normaliser: str) -> None:
    batch = [f"第{i}行 {PIECES[i % len(PIECES)]}{PIECES[i * 7 % len(PIECES)]}" for i in range(1000)]
    assert normalise_batch(batch, normaliser) == [normalise_batch([text], normaliser)[0] for text in batch]


def test_every_character_follows_the_rules() -> None:
    planes = [range(0x20000), range(0x2F800, 0x2FA20), range(0xE0000, 0xE0200)]
    everything = [f"a{chr(code)}b" for plane in planes for code in plane]
    assert normalise_batch(everything) == list(map(plain, everything))


def test_every_pair_that_unicode_composes_is_composed() -> None:
    decompositions = {unicodedata.decomposition(chr(code)) for code in range(0x110000)}
    pairs = [d.split() for d in decompositions if re.fullmatch(r"[0-9A-F]+ [0-9A-F]+", d)]
    batch = ["".join(chr(int(code, 16)) for code in pair) for pair in pairs]
    assert len(batch) > 1000
    assert normalise_batch(batch) == list(map(plain, batch))


@given(texts, st.sampled_from(NORMALISERS))
def test_what_comes_out_is_one_line_with_single_spaces(text: str, normaliser: str) -> None:
    (line,) = normalise_batch([text], normaliser)
    assert line == " ".join(line.split())


@given(texts)
def test_normalising_twice_changes_no_word(text: str) -> None:
    """But what stood on both sides of an invisible character may combine, and two masks become one."""
    once = normalise_batch([text.translate(INVISIBLE)])
    assert normalise_batch(once) == [re.sub(r"\*+", "*", once[0])]


@pytest.mark.parametrize("blank", ["", " ", "\n", "\r\n\t", "\u00a0\u3000\u2003", "\u200b", "\ufeff \u00ad"])
@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_blank_stays_blank(blank: str, normaliser: str) -> None:
    assert normalise_batch([blank, "文", blank], normaliser) == ["", "文", ""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ１２３，第①条", "abc123,第1条"),
        ("Straße STRASSE", "strasse strasse"),
        ("ΟΔΟΣ οδος", "οδοσ οδοσ"),
        ("  你好\u00a0\u3000世界\r\n\r\n再见 ", "你好 世界 再见"),
        ("补偿10000元，共100000000元", "补偿10000元,共100000000元"),
        ("１１１１１１", "111111"),
        ("联系人****，电话138********", "联系人*,电话138*"),
        ("张XX住XXXX路", "张*住*路"),
        ("xxl号 x光 axxb 1xx2", "xxl号 x光 axxb 1xx2"),
        ("哈哈哈哈哈哈！！！！！", "哈哈哈!!!"),
        ("哈哈哈！！", "哈哈哈!!"),
        ("aaaaaah", "aaah"),
        ("见http://example.com/a?b=1，谢谢", "见 谢谢"),
        ("见www.example.com谢谢", "见 谢谢"),
        ("HTTPS://EXAMPLE.COM", ""),
        ("隐\u200b形\ufeff字", "隐形字"),
        ("RT @a: 转发微博 @b", "rt @a: 转发微博 @b"),
    ],
)
def test_plain(text: str, expected: str) -> None:
    assert normalise_batch([text]) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RT @name: hello world", "hello world"),
        ("RT@name hello", "hello"),
        ("RT: hello", "hello"),
        ("RT @a: RT @b: rt@c：hello", "hello"),
        ("RT: RT: rt hello", "rt hello"),
        ("so true RT @a: hello", "so true hello"),
        ("@a @b hello @c", "hello"),
        ("hello via @name", "hello"),
        ("hello\nRetweeted by NAME", "hello"),
        ("hello Retweeted by A, B and C", "hello"),
        ("RT @a: hello Retweeted by B", "hello"),
        ("转发微博 //@name: 你好", "你好"),
        ("好//@甲:对//@乙：是", "好 对 是"),
        ("回复@name:你好", "你好"),
        ("转发 @some-one.x·y: 你好", "你好"),
        ("轉發微博", ""),
        ("RT @name", ""),
        ("art rt-pcr start", "art rt-pcr start"),
        ("5 @ 3 回复 转发", "5 @ 3 回复 转发"),
    ],
)
def test_tweets_lose_who_passed_them_on(text: str, expected: str) -> None:
    assert normalise_batch([text], "tweet") == [expected]


@given(texts)
def test_no_name_is_left_in_a_tweet(text: str) -> None:
    """But an @ after a letter or digit is part of an address or a word."""
    assert not re.search(r"(?<![a-z0-9_./])@[a-z\u4e00-\u9fff]", normalise_batch([text], "tweet")[0])
