"""The places, people, numbers and dates that only one of two texts names."""

from __future__ import annotations

import pytest

from db_dedup.present.named_differences import difference_lines, named_differences


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("燕联小区3栋", "家塘小区3栋", {"places": (("燕联小区",), ("家塘小区",))}),
        ("联系人：王小明", "联系人：李大海", {"people": (("王小明",), ("李大海",))}),
        ("张先生来电", "赵女士来电", {"people": (("张",), ("赵",))}),
        ("陈某某反映", "反映", {"people": (("陈某某",), ())}),
        ("Mr. Smith wrote", "Mrs Jones wrote", {"people": (("smith",), ("jones",))}),
        ("欠薪5,000元和12.5元", "欠薪5,000元", {"numbers": (("12.5",), ())}),
        ("2024年3月5日停水", "2024年3月6日停水", {"dates": (("2024年3月5日",), ("2024年3月6日",))}),
        ("于2024-03-05停水", "于2024-03-05停水", {}),
        ("", "", {}),
    ],
)
def test_what_differs(one: str, other: str, wanted: dict[str, tuple[tuple[str, ...], ...]]) -> None:
    found = named_differences([one, ""], [other, ""])
    assert {sort: tuple(only) for sort, only in found.items()} == wanted


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("反映曙光南路路灯坏了", "曙光南路"),
        ("砂子塘小学门口", "砂子塘小学"),
        ("停水三天,人民东路全部", "人民东路"),
        ("a市文源社区的路灯", "文源社区"),
        ("位于a市嘉雨路的路灯", "嘉雨路"),
        ("我们在a3区的家", "a3区"),
        ("住在幸福小区三栋", "幸福小区"),
        ("天顶街道办事处", "天顶街道"),
    ],
)
def test_places_are_shown_by_their_whole_name(text: str, place: str) -> None:
    assert named_differences([text], ["a市停水"])["places"].only_a == (place,)


def test_the_columns_count_together() -> None:
    assert named_differences(["燕联小区", "停水"], ["停水", "燕联小区"]) == {}


def test_long_lists_are_cut() -> None:
    found = named_differences([" ".join(map(str, range(15)))], ["0"])
    (line,) = difference_lines(found, "a", "b")
    assert line == "Only in row a: numbers 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4 more"
