"""Which columns are proposed, by what a sample of their values looks like."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.proposal import ColumnChoice, choose_columns, choose_order, profile_column
from db_dedup.records import Family, SourceColumn, SourceTable
from db_dedup.sample import generate_petitions

ROWS = 200
PETITIONS = generate_petitions(ROWS).petitions
LETTERS = [petition.content for petition in PETITIONS]
TITLES = [petition.title for petition in PETITIONS]


def chosen(columns: dict[str, list[str]], families: dict[str, Family] | None = None) -> list[str]:
    return [choice.name for choice in choices(columns, families) if choice.is_chosen]


def choices(
    columns: dict[str, list[str]], families: dict[str, Family] | None = None
) -> tuple[ColumnChoice, ...]:
    kinds = families or {}
    return choose_columns(
        [profile_column(name, kinds.get(name, Family.TEXT), values) for name, values in columns.items()]
    )


NOT_COMPARED = {
    "id": [str(n) for n in range(ROWS)],
    "code": [f"A{n:08}" for n in range(ROWS)],
    "upvotes": [str(n % 17) for n in range(ROWS)],
    "product": [
        ("credit card", "mortgage or home loan", "credit reporting agency")[n % 3] for n in range(ROWS)
    ],
    "is_open": [("yes", "no")[n % 2] for n in range(ROWS)],
    "source": ["北京市政府信件"] * ROWS,
    "form": [json.dumps({"page": n, "title": "关于小区停水的投诉"}, ensure_ascii=False) for n in range(ROWS)],
    "link": [f"https://city.example/letters/{n}" for n in range(ROWS)],
    "uploaded_file": [f"scan_{n}.pdf" for n in range(ROWS)],
    "uploaded_by": [f"clerk{n % 4}@city.example" for n in range(ROWS)],
    "received": [f"2019/{n % 12 + 1}/{n % 28 + 1} 20:00:00" for n in range(ROWS)],
    "petitioner": [petition.petitioner or "" for petition in PETITIONS],
    "phone": [petition.phone or "" for petition in PETITIONS],
    "remark": ["", "转办单位已经收到这封信件并且做了登记"] + [""] * (ROWS - 2),
    "empty": [""] * ROWS,
    "答复内容": [f"您好，您反映的问题已收悉，现答复如下：经第{n}次核实，情况属实。" for n in range(ROWS)],
}


@pytest.mark.parametrize("name", NOT_COMPARED)
def test_what_says_nothing_of_the_matter_is_left_out_with_a_reason(name: str) -> None:
    columns = {"title": TITLES, name: NOT_COMPARED[name], "content": LETTERS}
    assert chosen(columns) == ["title", "content"]
    assert next(choice.reason for choice in choices(columns) if choice.name == name)


def test_a_wide_table_is_compared_by_its_texts_alone() -> None:
    assert chosen({**NOT_COMPARED, "narrative": LETTERS}) == ["narrative"]


def test_a_table_of_answers_is_compared_by_its_answers() -> None:
    assert chosen({"id": NOT_COMPARED["id"], "reply": LETTERS}) == ["reply"]


def test_a_text_that_few_rows_have_is_still_the_text() -> None:
    narrative = [text if n % 5 == 0 else "" for n, text in enumerate(LETTERS)]
    assert chosen({"product": NOT_COMPARED["product"], "narrative": narrative}) == ["narrative"]


def test_few_equal_texts_are_still_texts() -> None:
    assert chosen({"id": ["1", "2"], "content": LETTERS[:1] * 2}) == ["content"]


def test_titles_alone_are_texts() -> None:
    assert chosen({"id": NOT_COMPARED["id"], "title": TITLES}) == ["title"]


def test_english_texts() -> None:
    random = Random(1)
    words = ["the", "street", "light", "has", "been", "dark", "for", "three", "months", "nobody", "came"]
    texts = [" ".join(random.choices(words, k=15)) for _ in range(ROWS)]
    assert chosen({"state": ["FL", "CA", "NY", "TX"] * (ROWS // 4), "text": texts}) == ["text"]


def test_a_register_is_compared_by_what_identifies_a_row() -> None:
    random = Random(1)

    def names(count: int) -> list[str]:
        return ["".join(random.choices("abcdefghij", k=7)).title() for _ in range(count)]

    register = {
        "rec_id": [f"rec-{n}-org" for n in range(ROWS)],
        "given_name": names(ROWS),
        "surname": names(ROWS),
        "address": [f"{n} {name} Street" for n, name in enumerate(names(ROWS))],
        "state": ["nsw", "vic", "qld", "wa"] * (ROWS // 4),
        "date_of_birth": [f"{1900 + n % 99}{n % 12 + 1:02}{n % 28 + 1:02}" for n in range(ROWS)],
    }
    assert chosen(register) == ["given_name", "surname", "address", "date_of_birth"]


def test_addresses_alone_are_no_texts_but_are_compared_beside_texts() -> None:
    """A full Chinese address has as many words as a short text, and all of a household have the same one."""
    random = Random(2)

    def ideographs(count: int) -> str:
        return "".join(random.choices("东南西北中山河湖海江平安和宁长永新华光明", k=count))

    addresses = [f"{ideographs(18)}{n}号" for n in range(ROWS)]
    register = {
        "姓名": [ideographs(3) for _ in range(ROWS)],
        "住址": addresses,
        "性别": ["男", "女"] * (ROWS // 2),
        "手机号码": [f"1{random.randrange(10**9, 10**10)}" for _ in range(ROWS)],
    }
    assert chosen(register) == ["姓名", "住址", "手机号码"]
    assert chosen({"住址": addresses}) == ["住址"]
    contents = [ideographs(60) for _ in range(ROWS)]
    assert chosen({**register, "内容": contents}) == ["住址", "内容"]


def test_types_count_as_well_as_values() -> None:
    families = {"price": Family.NUMBER, "made": Family.DATE, "photo": Family.BINARY, "done": Family.BOOLEAN}
    columns = dict.fromkeys(families, LETTERS)
    assert chosen({**columns, "content": LETTERS}, families) == ["content"]


def test_a_text_with_a_number_and_without_a_space_is_no_code() -> None:
    assert chosen({"content": [f"第{n}号楼的路灯坏了三个月没有人来修理" for n in range(ROWS)]}) == ["content"]


def test_nothing_is_chosen_where_there_is_nothing() -> None:
    assert chosen({"id": NOT_COMPARED["id"], "upvotes": NOT_COMPARED["upvotes"]}) == []
    assert chosen({"empty": []}) == []


def order_among(columns: dict[str, tuple[Family, str]]) -> str | None:
    """Return the order column chosen among columns: name -> (family, form of the sampled values)."""
    own = tuple(SourceColumn(name, family, family.value) for name, (family, _) in columns.items())
    source = SourceTable("letters", None, (SourceColumn("id", Family.NUMBER, "INTEGER"), *own), ("id",))
    return choose_order(
        source, ("id",), {name: form for name, (_, form) in columns.items()} | {"id": "number"}
    )


A_DATE = (Family.DATE, "date")
DATE_AS_TEXT = (Family.TEXT, "date")
A_TEXT = (Family.TEXT, "text")


@pytest.mark.parametrize(
    "name",
    ["created_at", "createdAt", "CREATE_TIME", "createtime", "datetime", "date", "received", "登记时间"],
)
def test_a_name_that_tells_of_receipt(name: str) -> None:
    assert order_among({"some_day": A_DATE, name: A_DATE}) == name
    assert order_among({"content": A_TEXT, name: DATE_AS_TEXT}) == name


@pytest.mark.parametrize(
    "dates",
    [
        ["2019/6/5 5:19:45", "2019/12/14 0:16:52"],
        ["2019-06-05", "2019/06/14"],
        ["05.06.2019", "14.06.2019"],
        ["2019-06-05 5:19", "2019-06-05 11:07"],
        ["2019年6月5日", "2019年12月5日"],
    ],
)
def test_dates_as_texts_that_do_not_sort_by_time_give_no_order(dates: list[str]) -> None:
    profile = profile_column("created_at", Family.TEXT, dates * ROWS)
    assert profile.form == "unsorted date"
    assert order_among({"created_at": (Family.TEXT, profile.form)}) is None
    assert [choice.is_chosen for choice in choose_columns([profile])] == [False]


@pytest.mark.parametrize(
    "dates",
    [
        ["2019-06-05 05:19:45", "2019-12-14"],
        ["2019/06/05", "2019/12/14"],
        ["2019年06月05日", "2019年12月05日"],
        ["2019-06-05T05:19:45.123Z", "2019-12-14T00:00:00+08:00"],
    ],
)
def test_dates_as_texts_that_sort_by_time_may_give_the_order(dates: list[str]) -> None:
    assert profile_column("created_at", Family.TEXT, dates * ROWS).form == "date"


@pytest.mark.parametrize("name", ["created_by", "created_text", "sentiment", "candidate", "登记人"])
def test_a_text_that_holds_no_dates_gives_no_order(name: str) -> None:
    assert order_among({name: A_TEXT}) is None
    assert order_among({"seen": A_DATE, name: A_TEXT}) == "seen"


@pytest.mark.parametrize(
    "name", ["updated_at", "last_update", "birth_date", "dateOfBirth", "modified", "valid_until", "deadline"]
)
def test_a_date_of_another_time_gives_no_order(name: str) -> None:
    assert order_among({name: A_DATE}) is None
    assert order_among({name: DATE_AS_TEXT}) is None
    assert order_among({name: A_DATE, "seen": A_DATE}) == "seen"


@pytest.mark.parametrize("name", ["出生日期", "更新时间", "修改时间", "截止日期", "有效期限"])
def test_a_date_of_another_time_in_chinese(name: str) -> None:
    assert order_among({name: A_DATE}) is None


def test_the_order_of_a_table_without_rows_is_chosen_by_names() -> None:
    for name in ("created_at", "createtime", "CREATE_TIME", "登记时间"):
        names = ("created_by", "candidate", name, "content")
        own = tuple(SourceColumn(each, Family.TEXT, "TEXT") for each in names)
        assert choose_order(SourceTable("letters", None, own, ("id",)), ("id",), {}) == name


@given(st.dictionaries(st.text(min_size=1), st.lists(st.text(), max_size=8), max_size=5))
def test_any_values_can_be_judged(columns: dict[str, list[str]]) -> None:
    found = choices(columns)
    assert [choice.name for choice in found] == list(columns)
    assert all(choice.reason for choice in found)


def test_the_beginning_of_a_long_json_is_json() -> None:
    """Samples hold the beginnings of long values."""
    letters = [json.dumps({"page": n, "text": [LETTERS[n], n]}, ensure_ascii=False) for n in range(ROWS)]
    columns = {"form": [letter[:-10] for letter in letters], "content": LETTERS}
    assert chosen(columns) == ["content"]
    assert profile_column("form", Family.OTHER, columns["form"]).form == "JSON"
    for cut in range(1, 7):  # within an escape, too
        escaped = [json.dumps({"page": n, "text": [LETTERS[n]]})[: -3 - cut] for n in range(ROWS)]
        assert profile_column("form", Family.TEXT, escaped).form == "JSON", cut
    brackets = [f"[{title}" for title in TITLES]
    assert profile_column("title", Family.TEXT, brackets).form == "text"


@pytest.mark.parametrize("value", ["1" * 200_000 + "x", "1," * 100_000 + "x"])
def test_a_long_run_of_digits_is_judged_at_once(value: str) -> None:
    """In time that grows with its length, not with its square: a day would not be enough otherwise."""
    assert profile_column("body", Family.TEXT, [value]).form != "number"
