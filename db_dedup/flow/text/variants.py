"""Spellings that Unicode keeps apart: traditional characters, Chinese numerals, Arabic vowel signs.

Each step is a function of the text alone and changes nothing when it is applied again. Decision 0050 explains
what is converted and what is not.
"""

import re
import unicodedata
from functools import cache, lru_cache
from importlib import resources
from typing import Final

_DIGITS: Final = "零一二三四五六七八九"
_PLACES: Final = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_ONE_SPELLING: Final = str.maketrans("〇○两壹贰叁肆伍陆柒捌玖拾佰仟", "零零二一二三四五六七八九十百千")
_AMOUNT: Final = "〇零○一二两三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟"
_SINGLE: Final = "一二两三四五六七八九壹贰叁肆伍陆柒捌玖"
_DAY: Final = "一二三四五六七八九十"
_MONEY: Final = "(?:[美港日欧]?元|圆|块钱)"

NUMERALS: Final = _AMOUNT
UNITS: Final = "年月日号元圆块美港欧"
"""Every numeral that is converted is directly followed by one of these."""

REACH: Final = NUMERALS + UNITS + "数几第点钱整召称码令份底初上中下旬"
"""The ideographs by which the conversion of a numeral beside them is decided."""

# A number is converted only as a whole: the character before it must not belong to it, nor make it vague
# (数十元) or an ordinal. A letter, "." or "/" before it could be a part of a link. The expression begins with
# a set of characters and not with what may be before them, because Python finds a set five times faster.
_NUMBER: Final = re.compile(
    rf"[0-9{_AMOUNT}](?<![0-9a-z./{_AMOUNT}数几第点].)(?<![0-9],.)(?:"
    rf"(?<=[一二])[〇零○0一二三四五六七八九]{{3}}(?=年)(?P<year>)"
    rf"|(?<=[{_DAY}])[{_DAY}]?(?=月(?:[{_DAY}]{{1,3}}|[0-9]{{1,2}})[日号])(?P<month>)"
    rf"|(?<=年[{_DAY}])[{_DAY}]?(?=月)(?P<month_of_year>)"
    rf"|(?<=[二三四五六七八九十])(?=月(?:份|底|初|[上中下]旬))(?P<month_alone>)"
    rf"|(?<=十)[一二](?=月(?:份|底|初|[上中下]旬))(?P<late_month_alone>)"
    rf"|(?<=月[{_DAY}])[{_DAY}]{{0,2}}(?=[日号])(?P<day_of_month>)"
    rf"|(?<=[{_DAY}])[{_DAY}]{{1,2}}(?=日|号(?![召称码令]))(?P<day>)"
    rf"|(?<=[{_AMOUNT}])[{_AMOUNT}]{{1,19}}(?={_MONEY})(?P<amount>)"
    rf"|(?<=十)(?={_MONEY})(?P<ten>)"
    rf"|(?<=[{_SINGLE}])(?=[美港日欧]?[元圆][钱整]|块钱)(?P<single>)"
    rf"|(?<=[四五六七八九])(?=元(?!\w))(?P<small>)"
    rf"|(?<=[0-9])[0-9]{{0,7}}(?:\.[0-9]{{1,8}})?(?:[百千]?[万亿]|[百千])(?={_MONEY})(?P<places>)"
    rf")"
)
_LARGEST: Final = {"month": 12, "month_of_year": 12, "day": 31, "day_of_month": 31}

# Marks above and below Arabic letters that readers leave out: vowels, doubling, those of the Koran; and the
# stroke that only lengthens a word. The hamza and the madda are parts of letters and stay.
_ARABIC_MARKS: Final = re.compile(
    "[\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]+"
)
ARABIC_STROKE: Final = "\u0640"


@cache
def simplified_characters() -> dict[int, int]:
    """Return traditional character -> simplified character, as code points of the basic plane."""
    lines = resources.files(__package__).joinpath("simplified.txt").read_text("utf-8").splitlines()
    return {ord(line[0]): ord(line[1]) for line in lines if line and line[0] != "#"}


def strip_arabic_marks(text: str) -> str:
    """Return a folded text without Arabic vowel signs; a letter may compose with what followed a sign."""
    stripped = _ARABIC_MARKS.sub("", text)
    return text if len(stripped) == len(text) else unicodedata.normalize("NFC", stripped)


def write_digits(text: str) -> str:
    """Return a folded text with the Chinese numerals of dates and amounts of money in digits."""
    return _NUMBER.sub(_in_digits, text)


def _in_digits(match: re.Match[str]) -> str:
    return _digits_of(match.group(), match.lastgroup or "")


@lru_cache(4096)
def _digits_of(numeral: str, kind: str) -> str:
    """Return a numeral in digits, or as it is if it is no number of this kind."""
    if kind == "year":
        spelt = numeral.translate(_ONE_SPELLING).replace("0", "零")
        return "".join(str(_DIGITS.index(character)) for character in spelt)
    if kind == "places":
        return _multiplied(numeral)
    number = _value(numeral)
    if number is None or number > _LARGEST.get(kind, number):
        return numeral
    return str(number)


def _multiplied(numeral: str) -> str:
    """Return 35000 for 3.5万; a numeral of which a part of the smallest unit would remain stays."""
    digits = numeral.rstrip("".join(_PLACES))
    whole, _, fraction = digits.partition(".")
    exponent = sum(len(str(_PLACES[place])) - 1 for place in numeral[len(digits) :])
    if len(fraction) > exponent:
        return numeral
    return str(int(whole + fraction) * 10 ** (exponent - len(fraction)))


def _value(numeral: str) -> int | None:
    """Return the number that a numeral means, None if it is not written in full (五六百, 一百二, 三万五)."""
    numeral = re.sub("(^|[零百千万亿])十", r"\1一十", numeral.translate(_ONE_SPELLING))
    total = section = digit = 0
    for character in numeral:
        place = _PLACES.get(character)
        if place is None:
            digit = _DIGITS.index(character)
        elif place < 10_000:
            section, digit = section + digit * place, 0
        else:
            # 亿 multiplies all that is before it (一万亿), 万 only what follows an 亿 (一亿三千万).
            whole, total = (0, total) if place == 10_000 else (total, 0)
            total, section, digit = total + (whole + section + digit) * place, 0, 0
    total += section + digit
    return total if total and _spelt(total) == numeral else None


def _spelt(number: int) -> str:
    """Return the full spelling of a positive number."""
    for name, place in reversed(_PLACES.items()):
        if number >= place:
            high, low = divmod(number, place)
            rest = ("零" if low < place // 10 else "") + _spelt(low) if low else ""
            return _spelt(high) + name + rest
    return _DIGITS[number]
