"""The names of places that are found in a text."""

from __future__ import annotations

from itertools import pairwise

import pytest

from db_dedup.flow.features.places import MOST_OF_SORT, find_places, place_names


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("我住在岳麓区天顶街道燕联小区3栋", ["岳麓区", "天顶街道", "燕联小区"]),
        ("a3区和b12县", ["a3区", "b12县"]),
        ("洋湖路与银杉大道交汇处", ["洋湖路", "银杉大道"]),
        ("广铁集团与长城银行远大支行", ["广铁集团", "长城银行", "远大支行"]),
        ("泉塘村村民到湘雅医院和砂子小学", ["泉塘村", "湘雅医院", "砂子小学"]),
        ("我们小区、本小区、这个小区、居民小区", []),
        ("这条路, 道路, 马路, 公路, 铁路, 路面", []),
        ("某某有限公司, 学校, 物业公司, it公司, 12345市", []),
        ("城市, 市民, 望城市民, 农村, 乡镇, 学区, 园区", []),
        ("street road school company", []),
        ("", []),
        ("区", []),
        ("路", []),
    ],
)
def test_names(text: str, wanted: list[str]) -> None:
    assert [text[start:end] for _, start, end in find_places(text)] == wanted


def test_names_of_rows_are_sorted_and_distinct() -> None:
    starts, values = place_names([["岳麓区", "", "洋湖路洋湖路"], ["燕联小区洋湖路", "", "岳麓区"]], 3)
    assert starts.tolist() == [0, 3, 3, 5]
    own = [values[a:b].tolist() for a, b in pairwise(starts.tolist())]
    assert all(names == sorted(set(names)) for names in own)
    assert set(own[2]) < set(own[0])


def test_no_rows() -> None:
    starts, values = place_names([], 0)
    assert (starts.tolist(), values.size) == ([0], 0)
    starts, values = place_names([[]], 0)
    assert (starts.tolist(), values.size) == ([0], 0)


def test_a_list_of_places_names_none_of_the_sort() -> None:
    """The comparison takes time with the square of the names of a sort."""
    names = [chr(0x5000 + i) + chr(0x6000 + i) + "村" for i in range(MOST_OF_SORT + 1)]
    starts, _ = place_names([["，".join(names), "，".join(names[1:]), "，".join(names) + "岳麓区"]], 3)
    assert (starts[1:] - starts[:-1]).tolist() == [0, MOST_OF_SORT, 1]


def test_characters_beyond_the_tables() -> None:
    assert find_places("𠀀𠀁区\ud800区😀路") == []
