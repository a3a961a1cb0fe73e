"""Milliseconds of each page of the review console, with 100,000 groups in each database.

The lowest of five: CPU time of the process (the database included if it is SQLite), and time by the clock.
"""

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path

from sqlalchemy import Column, DateTime, Integer, MetaData, String, Table, Text
from starlette.testclient import TestClient

from benchmarks.servers import DATABASES, each_database
from db_dedup import Database, Deduplicator
from db_dedup.app.tokens import Tokens
from db_dedup.config import ServerSettings
from db_dedup.web.service import make_service

REPEATS = 5
NAME = "letters"
_CHARACTERS = "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
_REGIONS = ("城东区", "城西区", "城南区", "城北区", "高新区", "开发区")
_LENGTH = 80
_RARE = 500
"""One group of so many has rows that name different places, another one a row inside a longer one."""

letters = Table(
    NAME,
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
    Column("region", String(50)),
    Column("created_at", DateTime, nullable=False),
)


@dataclass(frozen=True)
class Sizes:
    """How many groups the table has."""

    groups: int = 100_000


SMALL = Sizes(60)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print the times of the pages in each database."""
    for name, url in each_database(databases):
        begun = time.perf_counter()
        make(url, sizes.groups)
        print(f"{name}: {sizes.groups:,} groups, made in {time.perf_counter() - begun:.0f} s")
        measure(url)


def make(url: str, groups: int) -> None:
    """Fill and scan a table with so many groups."""
    with closing(Database(url, create=True)) as database:
        dialect = database.dialect
        with dialect.write_transaction(database.engine) as connection:
            letters.create(connection)
            names = [column.name for column in letters.columns]
            dialect.bulk_insert(connection, letters, names, _rows(groups))
        columns = {"content": 1, "region": {"kind": "value", "weight": 1}}
        dedup = Deduplicator(database, NAME, columns, order="created_at")
        dedup.upgrade()
        dedup.scan()


def _rows(groups: int) -> Iterator[tuple[int, str, str, datetime]]:
    """Yield the rows of the groups: most have two, one of a thousand has 300, and two thirds are copies."""
    chance = random.Random(1)
    begun, number = datetime(2022, 1, 1), 0
    for group in range(groups):
        content = "".join(chance.choices(_CHARACTERS, k=_LENGTH)) + "，家住阳光花园小区。"
        size = 300 if group % 5000 == 0 else chance.choice((2, 2, 2, 2, 3, 4))
        for member in range(size):
            text = content
            if member and group % _RARE == 1:
                text = content.replace("阳光花园", "月亮湾")
            elif member and group % _RARE == 2:
                text = content + "".join(chance.choices(_CHARACTERS, k=3 * _LENGTH))
            elif member and chance.random() < 1 / 3:
                text = content.replace(content[20:23], "电话号")
            yield number, text, chance.choice(_REGIONS), begun + timedelta(minutes=7 * number)
            number += 1


def measure(url: str) -> None:
    """Print the times of the pages."""
    with closing(Database(url)) as database:
        service, _ = make_service(database, None, ServerSettings(), Tokens())
        client = TestClient(service, base_url="http://127.0.0.1")
        groups = f"/console/tables/{NAME}"
        lists = ["", "?order=newest", "?order=loose", "?kind=edited", "?kind=partial", "?other_place=yes"]
        lists += ["?order=newest&kind=contained", "?order=newest&other_place=yes", "?loose=yes"]
        lists += ["?since=2024-03-01&until=2024-03-02", "?column=content&value=zzz"]
        pages = ["/console", *(groups + query for query in lists), f"{groups}/plots"]
        listed = client.get(groups)
        assert listed.status_code == 200, listed.text
        links = _links(listed.text, "row_key") + _links(listed.text, "cursor")
        for path in [*pages, links[0], links[-2], links[-1]]:
            client.get(path)
            found = []
            for _ in range(REPEATS):
                begun, cpu = time.perf_counter(), time.process_time()
                answer = client.get(path)
                assert answer.status_code == 200, answer.text
                found.append((time.process_time() - cpu, time.perf_counter() - begun))
            shown = answer.text.count('class="go"')
            print(
                f"{min(found)[0] * 1000:6.0f} ms CPU {min(w for _, w in found) * 1000:6.0f} ms "
                f"{shown:3} groups  {path[:90]}",
                flush=True,
            )


def _links(page: str, part: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'href="([^"]*)"', page) if part in link]
