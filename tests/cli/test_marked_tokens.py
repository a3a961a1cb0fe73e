"""Tokens of spaced scripts are shown and marked as whole words."""

import pytest

from db_dedup.present.marked_tokens import by_word
from db_dedup.records import MarkedToken


def letters(text: str, mark: str = "shared") -> list[MarkedToken]:
    return [MarkedToken(letter, "ignored" if letter == " " else mark) for letter in text]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "other", "differing"),
    [
        ("не работает лифт", "лифт не работал", ["работает"]),
        ("المصعد معطل منذ ثلاثة أيام", "المصعد معطل منذ خمسة أيام", ["ثلاثة"]),
        ("엘리베이터가 고장났습니다", "엘리베이터가 멈췄습니다", ["고장났습니다"]),
        ("ανελκυστήρας σταμάτησε", "ο ανελκυστήρας χάλασε", ["σταμάτησε"]),
    ],
)
def test_letters_are_marked_as_words(text: str, other: str, differing: list[str]) -> None:
    tokens = list(by_word(letters(text), text, other))
    assert [token.text for token in tokens if token.mark != "ignored"] == text.split()
    assert [token.text for token in tokens if token.mark == "differs"] == differing


def test_a_word_with_an_accent_is_one() -> None:
    tokens = [MarkedToken("caf", "differs"), MarkedToken("é", "ignored")]
    assert list(by_word(tokens, "café", "café")) == [MarkedToken("café", "shared")]


def test_what_the_segmenter_cuts_of_chinese_stays() -> None:
    tokens = [MarkedToken("电梯", "shared"), MarkedToken("停运", "differs"), MarkedToken("ok", "shared")]
    assert list(by_word(tokens, "电梯停运ok", "电梯坏了")) == tokens


def test_words_that_a_segmenter_gives_without_the_spaces_between_them_stay_apart() -> None:
    tokens = [MarkedToken("new", "shared"), MarkedToken("phone", "differs"), MarkedToken("now", "shared")]
    assert list(by_word(tokens, "new phone, now", "a new one now")) == tokens
    grams = [MarkedToken("ne", "shared"), MarkedToken("ew", "shared")]
    assert list(by_word(grams, "new", "new")) == grams


def test_nothing_is_joined_across_what_is_left_out() -> None:
    tokens = [*letters("да"), MarkedToken("… 7 tokens …", "left_out"), *letters("нет")]
    assert [token.text for token in by_word(tokens, "да, да, нет", "да")] == ["да", "… 7 tokens …", "нет"]
