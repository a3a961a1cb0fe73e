"""The pages of the review console: what they show, and in which order."""

from __future__ import annotations

import re
from contextlib import closing
from html import unescape
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from sqlalchemy import Column, MetaData, String, Table, Text, insert, update
from sqlalchemy import text as sql

from db_dedup import Database, Deduplicator
from db_dedup.records.kinds import KINDS
from db_dedup.store import review_candidates, review_pages
from tests.servers import Database as Served
from tests.web.conftest import Client, running
from tests.web.console.conftest import Page, Visitor

GROUPS = "/console/tables/petitions"
HOSTILE = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>' onload='alert(3) {{ 7*99999 }} & \u202e"


def group_ids(page: Page) -> list[str]:
    """Return the groups of a list, in its order."""
    return [parse_qs(urlsplit(link).query)["row_key"][0] for link in page.links("/group?row_key")]


def listed(visitor: Visitor, query: str) -> list[str]:
    """Return the groups of all pages of a list."""
    return [key for page in visitor.every(f"{GROUPS}?{query}") for key in group_ids(page)]


def test_from_the_tables_to_the_texts_of_a_group(visitor: Visitor, dedup: Deduplicator) -> None:
    for typed in ("/", "/console/"):
        assert visitor.get(typed).headers["location"] == "/console"
    page = visitor.get("/console")
    assert f"{len(dedup.groups())} groups" in page.text
    loose = sum(group.is_loose for group in dedup.groups())
    assert f"{loose} of them loose groups" in page.text
    (groups,) = page.links("/console/tables/petitions")[:1]
    page = visitor.get(groups)
    first = max(dedup.groups(), key=lambda group: (group.size, group.group_id))
    assert group_ids(page)[0] == first.group_id
    group = visitor.get(page.links("/group?row_key")[0])
    assert group.status == 200
    texts = dedup.texts().read([first.representative_key])[first.representative_key]
    assert texts[0] in unescape(re.sub("<[^>]*>", "", group.text))
    assert "of 64 bits differ, at most" in group.text


def test_the_headers_of_pages(visitor: Visitor) -> None:
    headers = visitor.get("/console").headers
    # With "no-referrer" a browser would send "Origin: null" with each form, which is refused.
    assert headers["referrer-policy"] == "same-origin"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    for page in (visitor.get(GROUPS), visitor.get("/console/tables/no")):
        assert " style=" not in page.text
        assert not re.search(r"<script(?! src=\"/console/static/console.js\" defer)|\son\w+=", page.text)


@pytest.mark.parametrize("order", ["size", "newest", "loose"])
def test_every_group_comes_once_in_each_order(visitor: Visitor, dedup: Deduplicator, order: str) -> None:
    found = listed(visitor, f"order={order}")
    by_id = {group.group_id: group for group in dedup.groups()}
    assert sorted(found) == sorted(by_id)
    groups = [by_id[key] for key in found]
    assert len(groups) > 20
    if order == "newest":
        newest = [max(map(int, dedup.members(group.group_id))) for group in groups]
        assert newest == sorted(newest, reverse=True)
    elif order == "size":
        assert [group.size for group in groups] == sorted((g.size for g in groups), reverse=True)
    else:
        assert 0 < sum(group.is_loose for group in groups) < len(groups)
        places = [(not group.is_loose, -group.size) for group in groups]
        assert places == sorted(places)


def _having(dedup: Deduplicator, keys: set[str]) -> list[str]:
    """Return the groups with one of these rows."""
    return sorted(g.group_id for g in dedup.groups() if keys.intersection(dedup.members(g.group_id)))


@pytest.mark.parametrize("order", ["size", "newest", "loose"])
def test_groups_with_a_kind_of_pair_or_two_places(visitor: Visitor, dedup: Deduplicator, order: str) -> None:
    pairs = list(dedup.pairs())
    for kind in KINDS:
        expected = _having(dedup, {pair.key_a for pair in pairs if pair.kind == kind})
        assert 0 < len(expected) < len(dedup.groups()), kind
        assert sorted(listed(visitor, f"order={order}&kind={kind}")) == expected, kind
    flagged = _having(dedup, {pair.key_a for pair in pairs if pair.other_place})
    others = sorted({group.group_id for group in dedup.groups()} - set(flagged))
    assert flagged
    assert others
    assert sorted(listed(visitor, f"order={order}&other_place=yes")) == flagged
    assert sorted(listed(visitor, f"order={order}&other_place=no")) == others


QUERIES = ("kind=copy", "kind=edited", "kind=partial", "other_place=yes", "since=2024-01-01&loose=no")


@pytest.mark.parametrize("order", ["size", "newest", "loose"])
def test_few_groups_are_listed_as_if_all_were_looked_at(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    for query in QUERIES:
        path = f"order={order}&{query}"
        with monkeypatch.context() as patched:
            # Nothing can be read but the groups of the pairs or rows that fit.
            patched.setattr(review_pages, "read_largest", None)
            patched.setattr(review_pages, "read_newest", None)
            # However slow the machine is: after a time the candidates are given up.
            patched.setattr("db_dedup.app.review_pages._SHARE_OF_CANDIDATES", 1_000)
            few = listed(visitor, path)
        with monkeypatch.context() as patched:
            patched.setattr(review_candidates, "_MOST", 0)
            assert few == listed(visitor, path), query
        assert few, query


def test_each_list_has_a_link(visitor: Visitor) -> None:
    page = visitor.get(f"{GROUPS}?order=newest&kind=edited&column=title")
    (lists,) = re.findall(r'<nav class="lists".*?</nav>', page.text, re.DOTALL)
    links = re.findall(r'<a href="([^"]*)"( aria-current="page")?>([^<]*)</a>', lists)
    assert [words for _, _, words in links] == ["all", "loose", "two places", *KINDS]
    assert [words for _, is_current, words in links if is_current] == ["edited"]
    for link, _, _ in links:
        assert "order=newest" in link
        assert visitor.get(unescape(link)).status == 200


def test_groups_by_date_value_and_key(visitor: Visitor, dedup: Deduplicator) -> None:
    texts = dedup.texts().read([key for group in dedup.groups() for key in dedup.members(group.group_id)])
    word = next(iter(texts.values()))[0][2:5]
    expected = _having(dedup, {key for key, (title, _) in texts.items() if word in title})
    assert sorted(listed(visitor, f"column=title&value={quote(word)}")) == expected
    assert expected
    with dedup.database.engine.connect() as connection:
        rows = connection.execute(sql("SELECT id, substr(created_at, 1, 10) FROM petitions")).all()
    received = {str(key): str(day) for key, day in rows}
    days = sorted(received.values())
    since, until = days[len(days) // 4], days[len(days) // 2]
    expected = _having(dedup, {key for key, day in received.items() if since <= day <= until})
    assert sorted(listed(visitor, f"since={since}&until={until}")) == expected
    assert 0 < len(expected) < len(dedup.groups())
    member = dedup.members(dedup.groups()[0].group_id)[-1]
    assert visitor.get(f"{GROUPS}?key=+{member}+").headers["location"].endswith(f"/group?row_key={member}")


def test_loose_groups(visitor: Visitor, dedup: Deduplicator) -> None:
    for word, flag in (("yes", True), ("no", False)):
        expected = sorted(group.group_id for group in dedup.groups() if group.is_loose is flag)
        assert 0 < len(expected) < len(dedup.groups())
        assert sorted(listed(visitor, f"loose={word}")) == expected


def test_every_row_of_a_group_is_shown_once(visitor: Visitor, dedup: Deduplicator) -> None:
    """Of two rows that are the nearest of each other, one card shows both."""
    for group in dedup.groups()[:6]:
        seen: list[str] = []
        beside: set[str] = set()
        for page in visitor.every(f"{GROUPS}/group?row_key={group.group_id}"):
            seen += [form["key_b"] for form in page.forms()]
            beside |= {form["key_a"] for form in page.forms()}
            for said in re.findall(r"would be shown: ([\d, ]+)\.|second row: ([\d, ]+)<", page.text):
                seen += [key for keys in said for key in keys.split(", ") if key]
        assert len(seen) == len(set(seen))
        others = set(dedup.members(group.group_id)) - {group.representative_key}
        assert set(seen) <= others <= {*seen, *beside}
        assert group.is_loose or set(seen) == others


def test_texts_names_and_keys_are_escaped(sqlite_database: Served) -> None:
    """A petition with a script and an end of an attribute, in a table with such names."""
    content = "请尽快派人修理小区门口的路灯，已经坏了三个月，晚上很暗，老人摔倒过两次。" * 3
    table = Table(
        "a<b>\"'t",
        MetaData(),
        Column("id", String(200), primary_key=True),
        Column("<i>col\"'", String(200)),
        Column("content", Text),
    )
    rows = [(f"{HOSTILE}{i}", HOSTILE, f"{content}{HOSTILE}{i}{i}") for i in range(4)]
    with sqlite_database.engine.begin() as connection:
        table.create(connection)
        names = [column.name for column in table.columns]
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])
    with closing(Database(sqlite_database.url)) as database:
        dedup = Deduplicator(database, table.name, {"<i>col\"'": 1, "content": 1})
        dedup.upgrade()
        dedup.scan()
        (group,) = dedup.groups()
        assert group.size == 4
        with running(database) as client:
            visitor = Visitor(client.port)
            page = visitor.get("/console")
            pages = [page]
            for part in ("/console/tables/", "/group?row_key"):
                pages.append(visitor.get(pages[-1].links(part)[0]))
            pages.append(visitor.get(f"{urlsplit(pages[1].links('/group')[0]).path}?row_key=%3Cscript%3E%22"))
            form = pages[2].forms()[0]
            answer = visitor.post(
                f"{urlsplit(pages[1].links('/group')[0]).path.removesuffix('group')}label",
                {**form, "action": "confirm"},
                {"Origin": f"http://127.0.0.1:{client.port}", "X-Part": "1"}
                | {"Content-Type": "application/x-www-form-urlencoded"},
            )
            pages.append(answer)
    assert [page.status for page in pages] == [200, 200, 200, 404, 200]
    assert len(pages[2].forms()) == 3
    for page in pages:
        for raw in ("<script>", "<img", "<i>", '" onload', "' onload", "699993"):
            assert raw not in page.text, raw
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", page.text)
    assert "&lt;script&gt;" in pages[2].text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/console/tables/no", 404),
        ("/console/nothing", 404),
        (f"{GROUPS}?since=yesterday", 422),
        (f"{GROUPS}?until=9999-12-31", 422),
        (f"{GROUPS}?cursor=x", 422),
        (f"{GROUPS}/group", 422),
        (f"{GROUPS}/group?row_key=nobody", 404),
        (f"{GROUPS}/pair?key_a=1&key_b=nobody", 404),
        ("/console/static/../site.py", 404),
        ("/console/static/%2e%2e%2fsite.py", 404),
    ],
)
def test_errors(visitor: Visitor, path: str, status: int) -> None:
    page = visitor.get(path)
    assert page.status == status
    if "static" not in path:
        assert page.headers["content-type"].startswith("text/html")
        assert "<h1>" in page.text
    chinese = visitor.get(path, Accept_Language="zh")
    if "static" not in path:
        assert '<html lang="zh-CN">' in chinese.text
        (said,) = re.findall(r'<p class="fault"([^>]*)>(.*?)</p>', chinese.text)
        assert said[0] == ""  # no other language than the page's
        assert re.search("[\u4e00-\u9fff]", said[1])


def test_no_text_or_key_is_logged(visitor: Visitor, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "db_dedup"):
        visitor.get(f"{GROUPS}/group?row_key=81723")
        visitor.get(f"{GROUPS}?column=title&value=81724")
        assert client.get("/tables").status == 200
    assert "/console/tables/{table}/group 404" in caplog.text
    assert "8172" not in caplog.text


@pytest.mark.parametrize("is_loose", [False, True])
def test_rows_of_a_group_whose_representative_was_deleted_are_shown(
    own_database: Database, is_loose: bool
) -> None:
    """Until the worker or a scan has seen it."""
    dedup = Deduplicator(own_database, "petitions")
    group = next(each for each in dedup.groups() if each.size > 2)
    row = own_database.tables.fingerprint
    with own_database.engine.begin() as connection:
        is_first = row.c.row_key == group.representative_key
        connection.execute(update(row).where(is_first).values(is_loose=is_loose))
        connection.execute(sql(f"DELETE FROM petitions WHERE id = {group.representative_key}"))
    seen: list[str] = []
    with running(own_database) as client:
        for page in Visitor(client.port).every(f"{GROUPS}/group?row_key={group.group_id}"):
            assert group.representative_key in page.text
            for form in page.forms():
                assert group.representative_key not in (form["key_a"], form["key_b"])
                seen += [form["key_a"], form["key_b"]]
            for said in re.findall(r"would be shown: ([\d, ]+)\.|second row: ([\d, ]+)<", page.text):
                seen += [key for keys in said for key in keys.split(", ") if key]
    assert set(seen) == set(dedup.members(group.group_id)) - {group.representative_key}
