"""The page of plots, and the samples that it is made from."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from html import unescape

import pytest
from sqlalchemy import text

from db_dedup import Database, Deduplicator
from db_dedup.app.review_samples import ReviewSamples
from db_dedup.store import review_samples
from tests.web.conftest import running
from tests.web.console.conftest import Visitor

PLOTS = "/console/tables/petitions/plots"


def tables(page: str) -> list[dict[str, str]]:
    """Return the tables beside the pictures, as first column -> second column."""
    cells = re.compile(r'<th scope="row">(.*?)</th><td>(.*?)</td>')
    return [dict(cells.findall(table)) for table in re.findall(r"<table>.*?</table>", page, re.DOTALL)]


def test_the_plots_of_a_small_table_count_everything(visitor: Visitor, dedup: Deduplicator) -> None:
    page = visitor.get(PLOTS)
    assert page.text.count("<svg") == 3
    assert "From a sample" not in page.text
    sizes, distances, months = tables(page.text)
    by_size = Counter(group.size for group in dedup.groups())
    assert sizes["2 rows"] == str(by_size[2])
    found = Counter(pair.distance for pair in dedup.pairs() if pair.distance)  # 0: links of copies, too
    distances.pop("0 bits", None)
    assert {f"{bits} bits": str(count) for bits, count in found.items()} == distances
    with dedup.database.engine.connect() as connection:
        query = text("SELECT substr(created_at, 1, 7), count(*) FROM petitions GROUP BY 1")
        rows = {str(month): int(count) for month, count in connection.execute(query)}
    assert {month: int(shown.rpartition(" ")[2]) for month, shown in months.items()} == rows
    repeats = sum(group.size - 1 for group in dedup.groups())
    shares = [(rows[month], float(shown.partition("%")[0]) / 100) for month, shown in months.items()]
    assert sum(count * share for count, share in shares) == pytest.approx(
        repeats, abs=0.01 * sum(rows.values())
    )


def test_the_share_by_a_value(copied: Database) -> None:
    dedup = Deduplicator(
        copied,
        "petitions",
        {"title": 1, "content": 1, "channel": {"kind": "value"}},
        within="region",
        order="created_at",
    )
    dedup.scan()
    with running(copied) as client:
        visitor = Visitor(client.port)
        for column in ("channel", "region"):
            page = visitor.get(f"{PLOTS}?column={column}")
            assert f"by {column}" in page.text
            assert "From a sample" not in page.text
            *_, values = tables(page.text)
            with copied.engine.connect() as connection:
                query = text(f"SELECT {column}, count(*) FROM petitions GROUP BY 1")
                rows = {str(value or "(no value)"): str(n) for value, n in connection.execute(query)}
            shown = {unescape(value): said.rpartition(" ")[2] for value, said in values.items()}
            assert shown.items() <= rows.items()
            assert len(shown) == min(15, len(rows))


def test_a_sample_is_bounded_and_says_so(scanned_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_samples, "_ROWS_A_PLACE", 3)
    with closing(Database(scanned_url)) as database:
        found = ReviewSamples(database, "petitions").read("")
        assert not found.is_every_row
        assert not found.is_every_value
        assert 20 <= sum(rows for rows, _ in found.months.values()) <= 60
        with running(database) as client:
            assert "From a sample of" in Visitor(client.port).get(PLOTS).text
