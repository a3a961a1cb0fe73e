"""Seconds of each page of the review console, on a scanned table.

`python -m benchmarks.console_pages URL TABLE`; CPU seconds of the process, the lowest of five, the database
included if it is SQLite.
"""

import re
import sys
import time
from contextlib import closing
from html import unescape

from starlette.testclient import TestClient

from db_dedup import Database
from db_dedup.app.tokens import Tokens
from db_dedup.config import ServerSettings
from db_dedup.web.service import make_service

REPEATS = 5


def main(url: str, table: str) -> None:
    with closing(Database(url)) as database:
        service, _ = make_service(database, None, ServerSettings(), Tokens())
        client = TestClient(service, base_url="http://127.0.0.1")
        groups = f"/console/tables/{table}"
        lists = ["", "?order=newest", "?order=loose", "?kind=edited", "?kind=partial", "?other_place=yes"]
        lists += ["?loose=yes", "?since=2024-03-01&until=2024-03-02", "?column=content&value=zzz"]
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
            print(
                f"{min(found)[0] * 1000:6.0f} ms CPU {min(w for _, w in found) * 1000:6.0f} ms  {path[:90]}"
            )


def _links(page: str, part: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'href="([^"]*)"', page) if part in link]


if __name__ == "__main__":
    main(*sys.argv[1:])
