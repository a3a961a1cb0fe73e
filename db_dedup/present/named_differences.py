"""The places, people, numbers and dates that only one of two texts names, found by simple patterns.

They are found in the texts as they are in the table now, after normalising, and help a reader to see at once
in what two near-equal texts differ. Nothing is decided by them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from db_dedup.flow.features.places import find_places
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.segment import Segmenter, make_segmenter
from db_dedup.present.visible import visible
from db_dedup.translation import SORT, language, named, tr

_MOST_SHOWN: Final = 10
_SURNAMES: Final = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_TITLES: Final = "先生|女士|小姐|同志|老师|主任|局长|书记"
_LABELS: Final = "姓名|联系人|投诉人|反映人|来信人|申请人|举报人|我叫"
_PEOPLE: Final = re.compile(
    rf"(?:{_LABELS})\s*[:：]?\s*(?P<labelled>[{_SURNAMES}][\u4e00-\u9fff]{{1,2}})"
    rf"|(?P<titled>[{_SURNAMES}][\u4e00-\u9fff]{{0,2}}?)(?:{_TITLES})"
    rf"|(?P<masked>[{_SURNAMES}](?:某某|某|\*\*?))"
    r"|\b(?:mr|mrs|ms|dr)\.? (?P<english>[a-z]{2,})"
)
_DATES: Final = re.compile(
    r"\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月\d{1,2}[日号]?|\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}/\d{1,2}/\d{4}"
)
_NO_IDEOGRAPH: Final = re.compile(r"[^\u4e00-\u9fff]")
_LONGEST_BEFORE: Final = 20
"""Characters before a place among which the beginning of its name is looked for."""
_ENDS_OF_PLACES: Final = "省市区县镇乡村路街"
_NUMBERS: Final = re.compile(r"(?<![\d.])\d+(?:\.\d+)?(?![\d])")


class NamedDifference(NamedTuple):
    """What only one of two texts names, of one sort, in the order of the text."""

    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


SORTS: Final = ("places", "people", "numbers", "dates")
"""What is looked for."""

_LINE: Final = "Only in row {key}: {sort} {names}"
_AND_MORE: Final = "{names} and {count:,} more"


def named_differences(texts_a: Sequence[str], texts_b: Sequence[str]) -> dict[str, NamedDifference]:
    """Return sort -> what only one of two rows names; sorts without a difference are left out.

    Args:
        texts_a: the texts of the columns of the one row.
        texts_b: those of the other.
    """
    text_a, text_b = ("\n".join(normalise_batch(texts)) for texts in (texts_a, texts_b))
    named_a, named_b = _named(text_a), _named(text_b)
    places_a, places_b = _places(text_a), _places(text_b)
    differences = {
        "places": NamedDifference(_only_places(places_a, places_b), _only_places(places_b, places_a))
    } | {
        sort: NamedDifference(_only(named_a[sort], named_b[sort]), _only(named_b[sort], named_a[sort]))
        for sort in named_a
    }
    return {sort: found for sort, found in differences.items() if found.only_a or found.only_b}


def difference_lines(differences: Mapping[str, NamedDifference], key_a: str, key_b: str) -> Iterator[str]:
    """Yield a line for each row and each sort of which only this row names something."""
    for sort, found in differences.items():
        for key, names in ((key_a, found.only_a), (key_b, found.only_b)):
            if names:
                yield tr(_LINE, key=visible(key), sort=named(SORT, sort, language()), names=_shown(names))


def _shown(names: Sequence[str]) -> str:
    shown = tr(", ").join(map(visible, names[:_MOST_SHOWN]))
    more = len(names) - _MOST_SHOWN
    return tr(_AND_MORE, names=shown, count=more) if more > 0 else shown


def _only(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(others)
    return tuple(dict.fromkeys(name for name in names if name not in known))


def _named(text: str) -> dict[str, list[str]]:
    """Return sort -> the names in a normalised text, but those of places."""
    without_dates = _DATES.sub(" ", text)
    return {
        "people": [name for match in _PEOPLE.finditer(text) for name in match.groups() if name],
        "numbers": _NUMBERS.findall(without_dates),
        "dates": [match.group() for match in _DATES.finditer(text)],
    }


def _places(text: str) -> dict[int, tuple[str, str]]:
    """Return packed name -> (the characters before it, the name with its suffix)."""
    return {
        packed: (line[max(0, start - _LONGEST_BEFORE) : start], line[start:end])
        for line in text.split("\n")
        for packed, start, end in find_places(line)
    }


def _only_places(
    places: Mapping[int, tuple[str, str]], others: Mapping[int, tuple[str, str]]
) -> tuple[str, ...]:
    only = (place for packed, place in places.items() if packed not in others)
    return tuple(dict.fromkeys(_whole_name(before, name) for before, name in only))


def _whole_name(before: str, name: str) -> str:
    """Return the name from the beginning of the word in which it starts: 曙光南路 for 光南路.

    What ends another place is no part of it: 文源社区 in 市区文源社区.
    """
    before = _NO_IDEOGRAPH.split(before)[-1]
    start = 0
    for word in _segmenter().cut_batch([before + name]):
        if start + len(word) > len(before):
            break
        start += len(word)
    own = before[start:]
    end_of_other = max(own.rfind(end) for end in _ENDS_OF_PLACES)
    return own[end_of_other + 1 :] + name


@cache
def _segmenter() -> Segmenter:
    return make_segmenter("jieba")
