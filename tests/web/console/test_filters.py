"""The filters of the list of groups: what each finds, and how much it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, Text, insert

from db_dedup import Database, Deduplicator, Value
from db_dedup.app import review_pages as app_pages
from db_dedup.app.review_pages import ReviewPages
from db_dedup.records.reviews import GROUP_ORDERS, GroupFilter, GroupOrder
from db_dedup.store import review_pages
from db_dedup.web.cursors import cursor_of
from tests.servers import Database as Served
from tests.web.conftest import running
from tests.web.console.conftest import Visitor
from tests.web.console.test_pages import GROUPS, group_ids, listed

LETTERS = Table(
    "letters",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("received", Integer),
    Column("phone", String(100)),
    Column("body", Text),
)
LAMP = "请尽快派人修理小区门口的路灯，已经坏了三个月，晚上很暗，老人摔倒过两次。"
WATER = "我们这栋楼的水压一直很低，高层住户早晚完全没有水，物业说要换水泵却一直拖着。"
ROWS = (
    ("138****0001", LAMP),
    ("138****0001", f"{LAMP}谢谢"),
    ("https://example.org/w", f"{WATER}照片在 https://example.org/w 上"),
    ("https://example.org/w", f"{WATER}照片在 https://example.org/w 上，请看"),
)


@pytest.fixture
def letters(sqlite_database: Served) -> Iterator[Visitor]:
    """A reader of two groups, 1 and 3, in a table that is ordered by a number."""
    with sqlite_database.engine.begin() as connection:
        LETTERS.create(connection)
        rows = [{"received": 7, "phone": phone, "body": body} for phone, body in ROWS]
        connection.execute(insert(LETTERS), rows)
    with closing(Database(sqlite_database.url)) as database:
        dedup = Deduplicator(database, "letters", {"phone": Value(), "body": 1}, order="received")
        dedup.upgrade()
        dedup.scan()
        assert {group.group_id for group in dedup.groups()} == {"1", "3"}
        with running(database) as client:
            yield Visitor(client.port)


def test_links_and_masks_are_values_too(letters: Visitor) -> None:
    groups = {
        ("phone", "138****0001"): ["1"],
        ("phone", "139****0002"): [],
        ("phone", "HTTPS://example.org/w"): ["3"],
        ("phone", "https://example.org/x"): [],
        ("body", "https://example.org/w"): ["3"],
        ("body", "https://example.org/x"): [],
        ("body", "****"): [],
        ("body", "水壓"): ["3"],
    }
    found = {
        (column, value): group_ids(
            letters.get(f"/console/tables/letters?column={column}&value={quote(value)}")
        )
        for column, value in groups
    }
    assert found == groups


def test_a_table_without_dates_has_no_filter_of_days(letters: Visitor, visitor: Visitor) -> None:
    page = letters.get("/console/tables/letters")
    assert 'name="value"' in page.text
    assert 'type="date"' not in page.text
    assert visitor.get(GROUPS).text.count('type="date"') == 2
    for query in ("since=2024-01-01", "until=2024-01-01"):
        page = letters.get(f"/console/tables/letters?{query}")
        assert page.status == 422
        assert "it has no order column with dates" in page.text


@pytest.mark.parametrize("order", GROUP_ORDERS)
def test_after_the_last_group_there_is_no_next_page(visitor: Visitor, order: GroupOrder) -> None:
    place = cursor_of((1 if order == "loose" else 0, 0, ""))
    for query in ("", "&kind=edited"):
        page = visitor.get(f"{GROUPS}?order={order}{query}&cursor={place}")
        assert not group_ids(page)
        assert 'rel="next"' not in page.text


def test_of_loose_groups_only_the_wanted_part_is_read(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, asked = review_pages.read_largest, []

    def counted(*given: Any) -> Any:
        asked.append(given[-1])
        return read(*given)

    monkeypatch.setattr(review_pages, "read_largest", counted)
    for word, is_loose in (("yes", True), ("no", False)):
        asked.clear()
        found = listed(visitor, f"order=loose&loose={word}")
        assert set(asked) == {is_loose}
        assert found == listed(visitor, f"order=size&loose={word}")


@pytest.mark.parametrize("order", GROUP_ORDERS)
def test_the_time_is_looked_at_between_some_rows(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch, order: GroupOrder
) -> None:
    """Not only between a hundred groups, each of up to 200 rows."""
    monkeypatch.setattr(app_pages, "_ROWS_A_CHUNK", 12)
    review, wanted = ReviewPages(dedup.database, "petitions"), GroupFilter(column="title", value="的")
    whole = [group.id for group, _ in review.groups(order, wanted, None, 1_000, seconds=1_000).groups]
    found: list[int] = []
    page = review.groups(order, wanted, None, 1_000, seconds=0)
    pages = 1
    while True:
        assert sum(group.size for group, _ in page.groups) <= 12
        found += [group.id for group, _ in page.groups]
        if page.place is None:
            break
        assert page.is_cut
        page = review.groups(order, wanted, page.place, 1_000, seconds=0)
        pages += 1
    assert found == whole
    assert pages > 3
