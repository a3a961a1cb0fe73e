"""The example application through HTTP: what it shows before it files, and what it says of each petition."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import unescape
from importlib import import_module
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import Row, make_url, text

from db_dedup import Deduplicator
from tests.servers import Database

OFFICE = Path(__file__).parent.parent / "examples" / "petition_office"
SOME = 60
TEXT = "小区已经连续三天停水，物业没有说明原因，老人和孩子生活很不方便，请尽快处理并答复。"
WATER = {"title": "关于停水的投诉", "content": TEXT, "petitioner": "王芳", "phone": "13800000001"}
SEEN = re.compile(r'name="seen" value="([^"]*)"')
NUMBERS = re.compile(r'<li>\n<a href="/petitions/(\d+)"')


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture(scope="module")
def start() -> Iterator[Any]:
    """The module that starts the example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(OFFICE))
        patch.setattr(import_module("office.sample"), "PETITIONS", SOME)
        yield import_module("start")


@pytest.fixture(scope="module")
def prepared(start: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the sample and its answer, to be copied."""
    file = tmp_path_factory.mktemp("office") / "office.db"
    start.prepare(f"sqlite:///{file}")
    return file


@dataclass
class Clerk:
    """Works with the pages as a browser does."""

    client: TestClient
    database: Database

    def get(self, address: str) -> str:
        page = self.client.get(address)
        assert page.status_code == 200, page.text
        return unescape(page.text)

    def post(self, address: str, fields: dict[str, str]) -> Response:
        if "office_form" not in self.client.cookies:
            self.client.get("/file")
        value = self.client.cookies["office_form"]
        return self.client.post(address, data={**fields, "form_value": value}, follow_redirects=False)

    def file(self, fields: dict[str, str], **choice: str) -> int:
        """File a petition that must be stored; return its number."""
        answer = self.post("/file", {**fields, **choice})
        assert answer.status_code == 303, answer.text
        return int(answer.headers["location"].removeprefix("/petitions/").partition("?")[0])

    def refused(self, fields: dict[str, str], **choice: str) -> tuple[str, str]:
        """Send a petition that must not be stored; return (the page, the keys that it has shown)."""
        before = self.rows()
        answer = self.post("/file", {**fields, **choice})
        assert answer.status_code == 409
        assert self.rows() == before
        (keys,) = SEEN.findall(answer.text)
        return unescape(answer.text), keys

    def rows(self) -> list[Row[Any]]:
        with self.database.engine.connect() as connection:
            return list(connection.execute(text("SELECT * FROM petitions ORDER BY id")))

    def row(self, number: int) -> Row[Any]:
        return next(row for row in self.rows() if row.id == number)

    def work(self) -> None:
        """Let the worker handle the queue."""
        worker = Deduplicator(self.database.engine, "petitions").worker()
        while not worker.is_drained():
            worker.step()

    def labels(self, number: int) -> set[str]:
        """The labels on the page of a petition, above its text."""
        head = self.get(f"/petitions/{number}").partition('id="content"')[0]
        return set(re.findall(r'class="label (\w+)"', head))


@pytest.fixture
def clerk(database: Database, start: Any, prepared: Path) -> Iterator[Clerk]:
    if database.name == "sqlite":
        shutil.copyfile(prepared, str(make_url(database.url).database))
    else:
        start.prepare(database.url)
    app = import_module("office.app").make_app(database.url)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield Clerk(client, database)


def test_a_repeated_petition_is_shown_with_its_differences_and_linked(clerk: Clerk) -> None:
    first = clerk.file(WATER)
    assert clerk.post(f"/petitions/{first}/answer", {"answer": "水管已经修好。"}).status_code == 303
    later = {**WATER, "content": TEXT.replace("三天", "五天")}
    page, keys = clerk.refused(later)
    assert keys.split() == [str(first)]
    assert re.search(r"<del><span.*?</span>三<span.*?<ins><span.*?</span>五<span", page)
    assert "水管已经修好。" in page
    number = clerk.file(later, seen=keys, link=str(first))
    assert clerk.row(number).follows_id == first
    clerk.work()
    page = clerk.get(f"/petitions/{number}")
    # The answer of the first received is above the petition's own text.
    assert page.index("水管已经修好。") < page.index("五天")
    assert f'href="/petitions/{first}"' in page
    assert clerk.labels(first) == {"first"}


def test_what_the_labels_mean(clerk: Clerk) -> None:
    first = clerk.file(WATER)
    _, keys = clerk.refused(WATER)
    again = clerk.file(WATER, seen=keys, link=str(first))
    more = {
        **WATER,
        "content": TEXT + "另外，电梯也经常停运，已经两次困人，物业一直没有派人检修，希望一并督促解决。",
    }
    _, keys = clerk.refused(more)
    further = clerk.file(more, seen=keys, link=str(first))
    clerk.work()
    assert clerk.labels(again) == {"repeat"}  # linked, but the same text
    assert clerk.labels(further) == {"follow_up"}
    for phone in ("13800000002", "13800000003"):
        other = {**WATER, "petitioner": "李强", "phone": phone}
        _, keys = clerk.refused(other)
        signed = clerk.file(other, seen=keys, anyway="1", reason="另一住户")
        clerk.work()
        assert clerk.labels(signed) == (set() if phone.endswith("2") else {"joint"})
    assert clerk.labels(first) == {"first", "joint"}


def test_filing_anyway_needs_a_reason(clerk: Clerk) -> None:
    clerk.file(WATER)
    _, keys = clerk.refused(WATER)
    page, _ = clerk.refused(WATER, seen=keys, anyway="1", reason="  ", lang="en")
    assert 'id="reason-fault" role="alert"' in page
    clerk.refused(WATER, seen=keys)  # seen is not decided
    number = clerk.file(WATER, seen=keys, anyway="1", reason="另一栋楼 <b>")
    assert (clerk.row(number).reason, clerk.row(number).follows_id) == ("另一栋楼 <b>", None)
    assert "另一栋楼 &lt;b&gt;" in clerk.client.get(f"/petitions/{number}").text


def test_a_petition_that_came_in_meanwhile_is_shown_first(clerk: Clerk) -> None:
    clerk.file(WATER)
    _, keys = clerk.refused(WATER)
    other = clerk.file({**WATER, "content": TEXT + "谢谢。"}, seen=keys, anyway="1", reason="另一栋楼")
    page, both = clerk.refused(WATER, seen=keys, anyway="1", reason="我的理由")
    assert set(both.split()) == {keys, str(other)}
    assert "其中有刚刚登记的" in page
    assert re.findall(r'id="similar-(\d+)"', page) == [str(other), keys]
    assert "我的理由</textarea>" in page
    clerk.file(WATER, seen=both, anyway="1", reason="我的理由")


def test_of_clerks_who_file_the_same_at_once_one_succeeds(clerk: Clerk) -> None:
    clerk.get("/file")
    before = len(clerk.rows())
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: clerk.post("/file", WATER), range(4)))
    assert sorted(answer.status_code for answer in answers) == [303, 409, 409, 409]
    assert len(clerk.rows()) == before + 1


def test_lists_and_counts_follow_the_rules(clerk: Clerk) -> None:
    wanted = expected_lists(clerk)
    counts = dict(re.findall(r'\?show=(\w+)".*?class="count">(\d+)<', clerk.get("/")))
    assert counts == {name: str(len(numbers)) for name, numbers in wanted.items()}
    for name, numbers in wanted.items():
        assert numbers, name
        assert walked(clerk, f"/?show={name}") == sorted(numbers, reverse=True), name
    page = clerk.get("/counts")
    regions = dict(
        re.findall(r'<bdi>([^<]+)</bdi></th><td class="figure">(\d+)</td><td class="figure">', page)
    )
    received: dict[str, int] = defaultdict(int)
    for row in clerk.rows():
        received[row.region or "未填写"] += 1
    assert {name: int(count) for name, count in regions.items()} == received


def walked(clerk: Clerk, address: str) -> list[int]:
    """The numbers of a list, page after page."""
    page = clerk.get(address)
    numbers = [int(number) for number in NUMBERS.findall(page)]
    older = re.findall(r'rel="next" href="([^"]*)"', page)
    return numbers + (walked(clerk, older[0]) if older else [])


def expected_lists(clerk: Clerk) -> dict[str, set[int]]:
    """Filter -> numbers, by the rules of the example, from what the Python API gives."""
    dedup = Deduplicator(clerk.database.engine, "petitions")
    groups = [dedup.members(group.group_id) for group in dedup.groups()]
    copies = {int(pair.key_b) for pair in dedup.pairs() if pair.kind == "copy"}
    rows = {row.id: row for row in clerk.rows()}
    lists: dict[str, set[int]] = {"all": set(rows), "grouped": set(), "repeat": set(), "joint": set()}
    lists["follow_up"] = {row.id for row in rows.values() if row.follows_id and row.id not in copies}
    lists["unanswered"] = {row.id for row in rows.values() if row.answer is None}
    for keys in groups:
        members = sorted((rows[int(key)] for key in keys), key=lambda row: (row.received_at, row.id))
        seen: set[str] = set()
        for row in members:
            person = row.phone or row.petitioner
            if person in seen and row.id not in lists["follow_up"]:
                lists["repeat"].add(row.id)
            seen |= {person} - {None}
        lists["grouped"] |= {row.id for row in members}
        if len(seen) >= 3:
            lists["joint"] |= {row.id for row in members}
    return lists


def test_wrong_input_is_explained_at_its_field(clerk: Clerk) -> None:
    before = clerk.rows()
    for fields, wrong in (
        ({**WATER, "title": " "}, "title"),
        ({**WATER, "content": "字" * 20_001}, "content"),
        ({**WATER, "phone": "1" * 51}, "phone"),
        *(({**WATER, "follows": number}, "follows") for number in ("99999", "x", "0", "９", "9" * 30)),
    ):
        answer = clerk.post("/file", fields)
        assert answer.status_code == 422
        assert f'href="#{wrong}"' in answer.text
        assert f'aria-describedby="{wrong}-fault"' in answer.text
    assert clerk.rows() == before
    assert clerk.post("/file", {**WATER, "content": "字" * 200_000}).status_code == 413
    number = clerk.file({**WATER, "title": "停\0水", "content": TEXT + "\r\n第二行"})
    assert (clerk.row(number).title, clerk.row(number).content) == ("停水", TEXT + "\n第二行")
    for address in (f"/petitions/{10**30}", "/petitions/0", "/petitions/x", "/?show=x", "/?before=x", "/x"):
        assert clerk.client.get(address).status_code == 404, address
    for number in (3 * 10**9, -3 * 10**9, 10**30, -(10**30)):  # no integer of PostgreSQL, or of SQLite
        assert clerk.client.get(f"/?before={number}").status_code == 404
        assert clerk.client.get(f"/petitions/{number}").status_code == 404
        assert clerk.post(f"/petitions/{number}/answer", {"answer": TEXT}).status_code == 404


def test_only_forms_of_its_own_are_taken(clerk: Clerk) -> None:
    clerk.get("/file")
    before = clerk.rows()
    for value in ("", "x" * 43):
        answer = clerk.client.post("/file", data={**WATER, "form_value": value})
        assert answer.status_code == 403
    value = clerk.client.cookies["office_form"]
    clerk.client.cookies.clear()
    assert clerk.client.post("/file", data={**WATER, "form_value": value}).status_code == 403
    assert clerk.rows() == before
    assert clerk.client.get("/", headers={"Host": "example.org"}).status_code == 400


def test_a_petition_cannot_change_the_page(clerk: Clerk) -> None:
    number = clerk.file({**WATER, "title": "<script>alert(1)</script>", "petitioner": '"><b>'})
    answers = [clerk.client.get(address) for address in ("/", f"/petitions/{number}")]
    answers.append(clerk.post("/file", {**WATER, "title": '"><script>alert(1)</script>'}))
    for answer in answers:
        assert "<script" not in answer.text
        assert "<b>" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_each_page_has_both_languages(clerk: Clerk) -> None:
    assert '<html lang="zh-CN">' in clerk.get("/")
    assert '<html lang="en">' in clerk.get("/?show=repeat&lang=en")
    page = clerk.get("/counts")
    assert "<h1>Counts</h1>" in page
    assert "?lang=zh" in page


def test_words_are_there_in_both_languages(start: Any) -> None:
    assert start
    words = import_module("office.words").WORDS
    for name, (chinese, english) in words.items():
        assert fields_of(chinese) == fields_of(english), name
        assert re.search("[一-鿿]", chinese), name
    used = set()
    for page in (OFFICE / "office").rglob("*.html"):
        used |= set(re.findall(r'\bt\("([\w.]+)"[,)]', page.read_text(encoding="utf-8")))
    assert used
    assert used <= words.keys()


def fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_its_alembic_finds_no_difference_and_a_second_start_keeps_all(clerk: Clerk, start: Any) -> None:
    number = clerk.file(WATER)
    before = clerk.rows()
    start.prepare(clerk.database.url)
    assert clerk.rows() == before
    assert clerk.row(number).title == WATER["title"]
    engine = import_module("office.models").open_database(clerk.database.url)
    import_module("alembic.command").check(start.alembic_config(engine))
    engine.dispose()
