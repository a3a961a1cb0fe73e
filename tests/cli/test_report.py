"""`report`: a page of figures and plots that says what the views say."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from db_dedup import Deduplicator
from db_dedup.app.table_report import report_table
from db_dedup.present.report_page import ShownGroups, report_page
from db_dedup.records.reports import RepeatCount, TableReport
from db_dedup.translation import use_language
from tests.cli.conftest import fail, rows, succeed, view
from tests.servers import Database

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)> 夜间施工噪音扰民，请尽快处理"


def page(*options: str) -> str:
    succeed("report", "petitions", "--output", "report.html", "--force", *options)
    return Path("report.html").read_text(encoding="utf-8")


class Reader(HTMLParser):
    """The elements of a page; it fails where a start and an end do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: Counter[str] = Counter()
        self.text = ""

    def handle_starttag(self, tag: str, _: object) -> None:
        self.seen[tag] += 1
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, _: object) -> None:
        self.seen[tag] += 1

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return reader


def figure(html: str, name: str) -> str:
    found = re.search(f'<td class="name">{name}</td><td>([^<]*)</td>', html)
    assert found, name
    return found[1]


def counted(engine: Engine, query: str) -> int:
    return int(rows(engine, query)[0][0])


def test_the_page_stands_alone_and_shows_no_text(scanned: Database) -> None:
    html = page()
    reader = read(html)
    assert reader.seen["svg"] >= 5
    assert not {"script", "link", "img", "a", "iframe"} & set(reader.seen)
    assert "http" not in html
    for title, content in rows(scanned.engine, "SELECT title, content FROM petitions"):
        assert title not in html
        assert content[:20] not in html


def test_texts_are_shown_when_asked_for_and_escaped(scanned: Database) -> None:
    with scanned.engine.begin() as connection:
        for key in (9001, 9002, 9003, 9004, 9005, 9006):
            connection.execute(
                text("INSERT INTO petitions (id, title, content, region, created_at) "
                     "VALUES (:id, :evil, :evil, :evil, '2024-01-01 00:00:00')"),
                {"id": key, "evil": EVIL},
            )  # fmt: skip
    succeed("scan", "petitions")
    html = page("--texts", "--by", "region")
    reader = read(html)
    assert "script" not in reader.seen
    assert "img" not in reader.seen
    assert html.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;") >= 4
    assert EVIL in reader.text
    assert "Row 9001 (representative)" in html


def test_values_with_a_common_beginning_are_counted_apart(scanned: Database) -> None:
    with scanned.engine.begin() as connection:
        connection.execute(text("UPDATE petitions SET region = NULL"))
        for rest, end in enumerate(("east", "west")):
            connection.execute(
                text("UPDATE petitions SET region = :region WHERE id % 4 = :rest"),
                {"region": "a" * 40 + end, "rest": rest},
            )
    found = report_table(Deduplicator(scanned.engine, "petitions"), ["region"])
    quarter = found.status.rows // 4
    assert {(count.label, count.rows) for count in found.values["region"]} == {
        ("a" * 40 + "…", quarter), (None, 2 * quarter),
    }  # fmt: skip
    assert len(found.values["region"]) == 3
    assert sum(count.repeats for count in found.values["region"]) == found.repeats


def test_the_figures_are_those_of_the_views(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    engine = petitions.engine
    groups, members, pairs = (view(petitions, f"duplicate_{name}") for name in ("groups", "members", "pairs"))
    found = report_table(Deduplicator(engine, "petitions"), ["region"])
    html = page("--by", "region", "--groups", "3")
    total = counted(engine, "SELECT count(*) FROM petitions")
    in_groups = counted(engine, f"SELECT count(*) FROM {members}")
    of_groups = counted(engine, f"SELECT count(*) FROM {groups}")
    repeats = in_groups - of_groups
    assert figure(html, "rows") == str(total)
    assert figure(html, "groups of duplicates") == str(of_groups)
    assert figure(html, "rows that repeat an earlier one") == f"{repeats} ({repeats / total:.1%})"
    assert found.repeats == repeats > 0
    kinds = dict(rows(engine, f"SELECT kind, count(*) FROM {pairs} GROUP BY kind"))
    assert {kind: count for kind, count in found.kinds.items() if count} == kinds
    all_pairs = counted(engine, f"SELECT count(*) FROM {pairs}")
    assert sum(found.distances.values()) == sum(found.similarities) == all_pairs - found.status.copies
    similarities = [
        s
        for (s,) in rows(engine, f"SELECT similarity FROM {pairs} WHERE NOT (distance = 0 AND kind = 'copy')")
    ]
    assert found.similarities[-1] >= sum(s >= 0.95 for s in similarities) > 0
    assert found.similarities[16] >= sum(0.8 <= s < 0.85 for s in similarities)
    assert sum(found.similarities[:10]) == 0
    again = f"SELECT row_key FROM {members} WHERE group_id <> row_key"
    repeated = {key for (key,) in rows(engine, again)}
    months, regions = Counter[str](), Counter[str | None]()
    repeated_in_month = Counter[str]()
    for key, region, created in rows(engine, "SELECT id, region, created_at FROM petitions"):
        months[str(created)[:7]] += 1
        repeated_in_month[str(created)[:7]] += str(key) in repeated
        regions[region] += 1
    assert found.months == tuple(RepeatCount(m, months[m], repeated_in_month[m]) for m in sorted(months))
    listed = found.values["region"]
    assert [count.rows for count in listed] == [n for _, n in regions.most_common(len(listed))]
    assert all(regions[count.label] == count.rows for count in listed)
    assert [scan.rows for scan in found.status.scans] == [total]
    assert f"<td>finished</td><td>{found.status.scans[0].seconds:,.1f}</td><td>{total}</td>" in html


def test_groups_to_review_are_listed(scanned: Database) -> None:
    engine = scanned.engine
    (key, size) = rows(engine, f"SELECT group_id, size FROM {view(scanned, 'duplicate_groups')} LIMIT 1")[0]
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE dedup_fingerprint SET is_loose = 1 WHERE row_key = :key"), {"key": key}
        )
        connection.execute(text("UPDATE dedup_pair SET other_place = 1"))
    html = page()
    found = report_table(Deduplicator(engine, "petitions"))
    assert found.loose == ((key, size),)
    assert "<h2>Loose groups</h2>" in html
    pairs = counted(engine, "SELECT count(*) FROM dedup_pair")
    assert found.other_place_pairs == pairs
    assert sum(group.pairs for group in found.other_places) <= pairs
    assert found.other_places[0].pairs == max(group.pairs for group in found.other_places) > 0
    assert "<h2>Different places</h2>" in html


@pytest.mark.parametrize(
    ("labels", "bars"),
    [
        (["2024-11", "2025-02"], ["2024-11", "2024-12", "2025-01", "2025-02"]),
        (["1900-01", "2024-12"], ["1900", "2024"]),
        (["2024-01", "2024/02"], []),
        ([None, "unknown"], []),
        (["2023/01", "2024-01", "2024-13"], ["2023", "2024"]),
    ],
)
def test_months_without_rows_have_a_place(
    scanned: Database, labels: list[str | None], bars: list[str]
) -> None:
    found = report_table(Deduplicator(scanned.engine, "petitions"))
    months = tuple(RepeatCount(label, 2, 1) for label in labels)
    values = {**vars(found), "months": months}
    html = report_page(TableReport(**values), ShownGroups([]))
    plot = re.search(r"<svg[^>]*>\s*<title>Rows by (?:month|year)</title>.*?</svg>", html, re.DOTALL)
    assert (plot is not None) == bool(bars)
    if plot:
        assert re.findall(r">(\d{4}(?:-\d\d)?)</text>", plot[0]) == bars


def test_a_page_is_not_replaced_unless_asked_for(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    Path("report.html").write_text("mine")
    assert "--force" in str(fail("report", "petitions", "--output", "report.html"))
    assert Path("report.html").read_text() == "mine"
    assert "channle" in str(fail("report", "petitions", "--output", "new.html", "--by", "channle"))
    assert not Path("new.html").exists()
    made = succeed("report", "petitions", "--output", "new.html")
    assert made.stderr == "wrote new.html\n"  # in the words of export and file


def test_a_store_of_its_own_is_enough(sqlite_petitions: Database) -> None:
    """Our tables in another database: the rows are read from the user's."""
    store = ("--store-url", "sqlite:///store.db")
    succeed("upgrade", *store)
    succeed("scan", "petitions", *store)
    html = page("--by", "region", *store)
    total = counted(sqlite_petitions.engine, "SELECT count(*) FROM petitions")
    assert figure(html, "rows") == str(total)
    assert "<h2>Rows by region</h2>" in html
    found = succeed("export", "petitions", "--columns", "id", *store).stdout.splitlines()
    assert len(found) == 1 + total


@pytest.mark.usefixtures("scanned")
def test_the_measure_has_a_name_in_chinese() -> None:
    assert "char_overlap of at least 0.57" in page()
    use_language("zh")
    try:
        chinese = page()
    finally:
        use_language("en")
    assert "字符重叠系数" in chinese
    assert "char_overlap" not in chinese


def test_names_of_tables_and_columns_are_escaped(scanned: Database) -> None:
    found = report_table(Deduplicator(scanned.engine, "petitions"))
    counts = (RepeatCount("<b>v", 2, 1), RepeatCount(None, 1, 0), RepeatCount(" ", 1, 0))
    odd = {"table": "<b>t", "values": {"<b>c": counts}}
    html = report_page(TableReport(**{**vars(found), **odd}), ShownGroups([]))
    assert "<b>" not in html
    assert html.count("&lt;b&gt;c") == 2
    assert "(none)" in html
    assert "(empty)" in html
