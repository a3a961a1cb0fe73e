"""A reader of pages: sends what a browser would send, and takes pages apart."""

from __future__ import annotations

import http.client
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from sqlalchemy import make_url

from db_dedup import Database
from tests.web.conftest import Client

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Page:
    """What the service answers to a reader."""

    status: int
    headers: Mapping[str, str]
    text: str

    def links(self, part: str) -> list[str]:
        """Return the addresses on the page that contain a text."""
        found = (unescape(address) for address in re.findall(r'href="([^"]*)"', self.text))
        return [address for address in found if part in address]

    def forms(self) -> list[dict[str, str]]:
        """Return the hidden fields of each form that gives labels."""
        forms = re.findall(r'<form[^>]*class="labels">(.*?)</form>', self.text, re.DOTALL)
        pattern = r'type="hidden" name="([^"]*)" value="([^"]*)"'
        return [{name: unescape(value) for name, value in re.findall(pattern, form)} for form in forms]

    @property
    def form_value(self) -> str:
        """What every form of the page has."""
        return str(re.findall(r'name="form_value" value="(\w+)"', self.text)[0])


@dataclass
class Visitor:
    """Asks for pages, keeps cookies."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Page:
        sent = dict(headers or {})
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            for name, value in answer.getheaders():
                if name.lower() == "set-cookie":
                    cookie, _, given = value.partition("=")
                    self.cookies[cookie] = given.partition(";")[0]
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Page(answer.status, names, answer.read().decode())

    def get(self, path: str, **headers: str) -> Page:
        return self.send("GET", path, headers={name.replace("_", "-"): v for name, v in headers.items()})

    def post(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Page:
        """Send a form; without other headers as a page of the service would."""
        own = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": FORM}
        given = own if headers is None else headers
        return self.send("POST", path, urlencode(fields).encode(), given)

    def every(self, path: str) -> Iterator[Page]:
        """Yield a page and those that follow it."""
        while True:
            page = self.get(path)
            assert page.status == 200, page.text
            yield page
            following = re.findall(r'rel="next" href="([^"]*)"', page.text)
            if not following:
                return
            path = unescape(following[0])


@pytest.fixture
def copied(scanned_url: str, tmp_path: Path) -> Iterator[Database]:
    """A copy of the scanned table, with its answer and triggers, that the test may change."""
    path = tmp_path / "copied.db"
    # A copy by SQLite itself, since a part of the file may still be in its journal.
    with (
        closing(sqlite3.connect(str(make_url(scanned_url).database))) as source,
        closing(sqlite3.connect(path)) as target,
    ):
        source.backup(target)
    with closing(Database(f"sqlite:///{path}")) as database:
        yield database


@pytest.fixture
def visitor(client: Client) -> Visitor:
    return Visitor(client.port)
