"""The names of places and organisations in a text: the ideographs before 区, 街道, 路, 小区 and the like.

A name is the two ideographs before such a suffix (天顶 in 天顶街道), or the letters and digits before it
(a3 in a3区). It is packed into one number with the sort of the place, so that two names can be compared
without their text. Words that name nothing (我们小区, 这条路, 道路, 有限公司) are left out by short lists.
Not all names are found, and a few words that are no names are; these names are enough to tell that two texts
are about different places.

Only simplified ideographs have such suffixes here. A text in words with spaces has no names.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import place_in, starts_of
from db_dedup.flow._code_points import code_points
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty

PLACE_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "district": ("区", "县"),
    "subdistrict": ("街道", "镇", "乡"),
    "road": ("路", "街", "大道", "巷"),
    "estate": ("小区", "社区", "花园", "公寓", "大厦", "广场", "家园", "苑"),
    "village": ("村",),
    "school": ("学校", "大学", "学院", "中学", "小学", "幼儿园"),
    "company": ("公司", "集团"),
    "bank": ("银行", "支行", "分行"),
    "hospital": ("医院",),
    "city": ("市",),
}
"""Sort of a place or organisation -> what its names end with."""

# A suffix that is followed by one of these is the beginning of another word: 市民, 区域, 路面.
_CONTINUED: Final[Mapping[str, str]] = {
    "市": "民场容政委长区值面内里中",
    "区": "域间别分委长内里",
    "县": "委城长",
    "路": "面灯人线过由程段边",
    "街": "坊上边",
    "镇": "静压",
    "乡": "村下亲土",
    "村": "民委庄",
}
# Function words and measure words: two ideographs with one of these are no name.
_NO_NAME: Final = (
    "的了在是有和与及或到从向对把被将让给为于由以按据就都也还又很更最太着过吗呢吧啊请问"
    "我你他她它们您咱本贵这那该此其某每各全整几何谁个条座栋所间处内外旁边侧"
    "进出来去回住搬往至离距沿穿等说找看见不没无未"
)
# What ends a word with a suffix, of which the whole is no name: 城市, 道路, 园区, 农村.
_NO_NAME_BEFORE: Final[Mapping[str, str]] = {
    "市": "城超",
    "路": "道铁线公马网电走问思",
    "区": "片园辖城郊山校学景地库厂院矿湖街禁中",
    "镇": "城乡集村",
    "乡": "城家故老",
    "村": "农乡",
    "县": "区市",
    "街道": "城",
}
# Words of two ideographs that name nothing of their own, one after the other.
_WORDS: Final = (
    "经开高新"
    "居民安置商品楼盘物业附近周边住宅封闭高档健身地下生活业主开放相邻隔壁周围其他所有影响导致使得占用"
    "密集美食规划配套开设破坏出入挨着对面有限责任股份管理开发建设装修装饰工程房产地产置业施工保险燃气"
    "自来供水供电电力公交分公总公子公母公服务科技传媒投资担保贷款中介经营正规医药连锁两家一家多家建筑"
    "建议希望要求反映投诉举报相关有关部门政府学生老师公立公办民办私立重点普通培训高速快速步行主干断头"
    "水泥交叉交通城乡国有中国人民中央商业专科附属综合三甲宿舍"
)
_LATIN_WORDS: Final = ("app", "it", "ktv", "vip", "wifi")

_POINT_BITS: Final = 21
_LATIN: Final = 1 << 42
NAME_BITS: Final = 43
"""The bits of a name; above them is the number of its sort."""
MOST_OF_SORT: Final = 64
"""A text that names more places of a sort is a list of places: none of the sort is kept."""
_LATIN_BITS: Final = 7
_LATIN_LENGTH: Final = 6
_NEWLINE: Final = 10
_LETTER_A: Final = 97
_LETTER_Z: Final = 122
_DIGITS: Final = (48, 57)
_IDEOGRAPHS: Final = (0x3400, 0x9FFF)


class _Words(NamedTuple):
    """The suffixes and the words that are no names, as the kernel takes them.

    Attributes:
        first: uint8[65536], by code point the number of the first suffix that begins with it; 255: none.
        suffixes: uint32[s, 3], ordered by their first code point, longer ones first; 0 fills up.
        lengths: int64[s].
        sorts: uint64[s], the number of each suffix's sort.
        continued: uint32[s, c], what may not follow; 0 fills up.
        ended: uint32[s, e], what may not come before; 0 fills up.
        is_no_name: bool[65536], by code point.
        words: uint64[w], ascending, packed.
    """

    first: NDArray[np.uint8]
    suffixes: NDArray[np.uint32]
    lengths: NDArray[np.int64]
    sorts: NDArray[np.uint64]
    continued: NDArray[np.uint32]
    ended: NDArray[np.uint32]
    is_no_name: NDArray[np.bool_]
    words: NDArray[np.uint64]


def place_names(
    columns: Sequence[Sequence[str]], row_count: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (int64[n + 1] the rows' slices, uint64[m] packed names, ascending and distinct within a row).

    Args:
        columns: column by column the normalised texts of n rows.
        row_count: n.
    """
    rows, values = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for texts in columns:
        points = code_points("\n".join([*texts, ""]))
        found = _find_names(points, _words())
        rows.append(found[0])
        values.append(found[1])
    return _by_row(np.concatenate(rows), np.concatenate(values), row_count)


def find_places(text: str) -> list[tuple[int, int, int]]:
    """Return (packed name, where it starts, where its suffix ends) of each name in a normalised text.

    They are in the order of the text. A name of more than two ideographs starts before its start here.
    """
    points = code_points(text + "\n")
    _, values, starts, ends = _find_names(points, _words())
    return list(zip(values.tolist(), starts.tolist(), ends.tolist(), strict=True))


def _by_row(
    rows: NDArray[np.int64], values: NDArray[np.uint64], row_count: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    is_new = np.ones(rows.size, np.bool_)
    is_new[1:] = (rows[1:] != rows[:-1]) | (values[1:] != values[:-1])
    rows, values = rows[is_new], values[is_new]
    # Rows and sorts are numbered together, to count the names of each sort in each row.
    sorts = rows * len(PLACE_SUFFIXES) + (values >> np.uint64(NAME_BITS)).astype(np.int64)
    is_kept = np.bincount(sorts, minlength=1)[sorts] <= MOST_OF_SORT
    rows, values = rows[is_kept], values[is_kept]
    return starts_of(np.bincount(rows, minlength=row_count)), values


@cache
def _words() -> _Words:
    suffixes = sorted(
        ((suffix, sort) for sort, group in enumerate(PLACE_SUFFIXES.values()) for suffix in group),
        key=lambda each: (each[0][0], -len(each[0])),
    )
    first = np.full(1 << 16, 255, np.uint8)
    for number, (suffix, _) in reversed(list(enumerate(suffixes))):
        first[ord(suffix[0])] = number
    is_no_name = np.zeros(1 << 16, np.bool_)
    is_no_name[[ord(character) for character in _NO_NAME]] = True
    pairs = zip(_WORDS[::2], _WORDS[1::2], strict=True)
    words = {(ord(one) << _POINT_BITS) | ord(other) for one, other in pairs} | set(map(_latin, _LATIN_WORDS))
    return _Words(
        first,
        _points([suffix for suffix, _ in suffixes]),
        np.array([len(suffix) for suffix, _ in suffixes]),
        np.array([sort for _, sort in suffixes], np.uint64),
        _points([_CONTINUED.get(suffix, "") for suffix, _ in suffixes]),
        _points([_NO_NAME_BEFORE.get(suffix, "") for suffix, _ in suffixes]),
        is_no_name,
        np.array(sorted(words), np.uint64),
    )


def _points(texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return uint32[n, longest]: the code points of each text, filled up with 0."""
    filled = np.zeros((len(texts), max(map(len, texts))), np.uint32)
    for row, text in enumerate(texts):
        filled[row, : len(text)] = [ord(character) for character in text]
    return filled


def _latin(word: str) -> int:
    packed = 0
    for character in word[-_LATIN_LENGTH:]:
        packed = packed << _LATIN_BITS | ord(character)
    return packed | _LATIN


def keyed_names(
    names: NDArray[np.uint64], mixed: Callable[[NDArray[np.uint64]], NDArray[np.uint64]]
) -> NDArray[np.uint64]:
    """Return packed names whose letters are replaced by hashes: as similar to each other as before.

    Args:
        names: uint64[m].
        mixed: returns a hash of each number.
    """
    sort = (names >> np.uint64(NAME_BITS)) << np.uint64(NAME_BITS)
    point = np.uint64((1 << _POINT_BITS) - 1)
    first = mixed((names >> np.uint64(_POINT_BITS)) & point) & point
    two = sort | (first << np.uint64(_POINT_BITS)) | (mixed(names & point) & point)
    word = mixed(names & np.uint64(_LATIN - 1)) & np.uint64(_LATIN - 1)
    return np.where(names & np.uint64(_LATIN), sort | np.uint64(_LATIN) | word, two)


@inner
def are_similar_names(one, other):
    """Return whether two packed names of a sort may be one: equal, or two ideographs of which one is common.

    A typing error changes one of the two ideographs. The names of two places seldom have one in common.
    """
    if one == other:
        return True
    mask, latin = np.uint64((1 << NAME_BITS) - 1), np.uint64(_LATIN)
    if one & latin or other & latin:
        return False
    one, other = one & mask, other & mask
    point = np.uint64((1 << _POINT_BITS) - 1)
    one_first, one_last = one >> np.uint64(_POINT_BITS), one & point
    other_first, other_last = other >> np.uint64(_POINT_BITS), other & point
    if one_first in (other_first, other_last):
        return True
    return one_last in (other_first, other_last)


@kernel
def _find_names(points, words):
    """Return the names in the texts, each of which ends with a newline.

    Returns:
        (int64[m] rows, uint64[m] packed names, int64[m] where each starts, int64[m] where its suffix ends).
    """
    # A name and its suffix take two characters at least. What is not written takes no memory.
    most = points.size // 2 + 1
    rows, values = empty(most, np.int64), empty(most, np.uint64)
    starts, ends = empty(most, np.int64), empty(most, np.int64)
    found, row, i = 0, 0, np.int64(0)
    while i < points.size:
        if points[i] == _NEWLINE:
            row += 1
        number = _suffix_at(points, i, words)
        if number < 0:
            i += 1
            continue
        end = i + words.lengths[number]
        start, name = _name_before(points, i, words)
        is_word = _is_one_of(points, end, words.continued[number]) or _is_one_of(
            points, i - 1, words.ended[number]
        )
        if name and not is_word:
            rows[found] = row
            values[found] = (words.sorts[number] << np.uint64(NAME_BITS)) | name
            starts[found], ends[found] = start, end
            found += 1
        i = end
    return rows[:found].copy(), values[:found].copy(), starts[:found].copy(), ends[:found].copy()


@inner
def _suffix_at(points, i, words):
    """Return the number of the longest suffix that begins here; -1 if none does."""
    if points[i] >= words.first.size or words.first[points[i]] == 255:
        return -1
    number = int(words.first[points[i]])
    while number < words.lengths.size and words.suffixes[number, 0] == points[i]:
        length, is_here = words.lengths[number], True
        for k in range(1, length):
            if i + k >= points.size or points[i + k] != words.suffixes[number, k]:
                is_here = False
                break
        if is_here:
            return number
        number += 1
    return -1


@inner
def _is_one_of(points, i, some):
    """Return whether the code point at this place is one of some; False outside the text."""
    if not 0 <= i < points.size:
        return False
    for point in some:  # noqa: SIM110 - numba compiles no generators
        if point == points[i]:
            return True
    return False


@inner
def _name_before(points, i, words):
    """Return (where the name starts that ends before this place, the packed name, 0 if there is none)."""
    name, start = np.uint64(0), i
    if i >= 1 and _is_latin(points[i - 1]):
        has_letter = False
        while start > 0 and _is_latin(points[start - 1]):
            start -= 1
            has_letter |= points[start] >= _LETTER_A
        for k in range(max(start, i - _LATIN_LENGTH), i):
            name = (name << np.uint64(_LATIN_BITS)) | np.uint64(points[k])
        name = name | np.uint64(_LATIN) if has_letter else np.uint64(0)
    elif i >= 2 and _is_part_of_name(points[i - 2], words) and _is_part_of_name(points[i - 1], words):
        start = i - 2
        name = (np.uint64(points[i - 2]) << np.uint64(_POINT_BITS)) | np.uint64(points[i - 1])
    place = place_in(words.words, name)
    is_word = place < words.words.size and words.words[place] == name
    return start, np.uint64(0) if is_word else name


@inner
def _is_latin(point):
    """Return whether it is a letter a-z or a digit; normalised texts have no capital letters."""
    return _LETTER_A <= point <= _LETTER_Z or _DIGITS[0] <= point <= _DIGITS[1]


@inner
def _is_part_of_name(point, words):
    return _IDEOGRAPHS[0] <= point <= _IDEOGRAPHS[1] and not words.is_no_name[point]
