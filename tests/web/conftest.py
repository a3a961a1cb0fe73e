"""A served database: the real server on a free port, in a thread of the test's process."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from sqlalchemy import URL, select, update

from db_dedup import Database, Deduplicator
from db_dedup.app.tokens import TOKENS_VARIABLE, add_token, new_token
from db_dedup.cli.demo import fill
from db_dedup.config import ServerSettings, Settings
from db_dedup.records.kinds import KINDS
from db_dedup.sample import Sample, generate_petitions
from db_dedup.web.server import serve
from tests.servers import Database as Served
from tests.servers import opened

COLUMNS = {"title": 1, "content": 1}
ALL = ("read", "check", "label")


@dataclass(frozen=True)
class Answer:
    """What the service answers."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The kind of problem; the answer must be one."""
        assert self.headers["content-type"] == "application/problem+json", self
        document = self.json()
        assert document["status"] == self.status
        assert document["title"]
        assert document["detail"]
        return str(document["type"]).removeprefix("/v1/docs#")


@dataclass(frozen=True)
class Client:
    """Sends requests to a service."""

    port: int
    token: str | None = None

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, f"/v1{path}", data, {**sent, **(headers or {})})
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())

    def get(self, path: str, **parameters: object) -> Answer:
        query = "&".join(f"{name}={quote(str(value))}" for name, value in parameters.items())
        return self.send("GET", f"{path}?{query}" if query else path)

    def post(self, path: str, body: object) -> Answer:
        return self.send("POST", path, body)

    def everything(self, path: str, entries: str, **parameters: object) -> list[Any]:
        """Read page after page."""
        found, page = [], self.get(path, **parameters).json()
        while True:
            found += page[entries]
            if page["next_cursor"] is None:
                return found
            assert page[entries]
            page = self.get(path, **parameters, cursor=page["next_cursor"]).json()


@contextmanager
def running(
    database: Database, settings: Settings | None = None, server: ServerSettings | None = None
) -> Iterator[Client]:
    """Serve a database until the block ends."""
    stop, told = threading.Event(), threading.Event()
    addresses: list[str] = []
    failed: list[BaseException] = []
    chosen = (server or ServerSettings()).model_copy(update={"port": 0})

    def tell(address: str) -> None:
        addresses.append(address)
        told.set()

    def run() -> None:
        try:
            serve(database, settings, chosen, stop, tell)
        except BaseException as error:
            failed.append(error)
            told.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert told.wait(60)
        if failed:
            raise failed[0]
        port = urlsplit(addresses[0]).port
        assert port is not None
        yield Client(port)
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


@pytest.fixture(autouse=True)
def no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKENS_VARIABLE, raising=False)


@pytest.fixture(scope="session")
def sample() -> Sample:
    return generate_petitions(120, seed=5, duplicate_share=0.4)


def scanned(served: Served, sample: Sample) -> Database:
    """Petitions with an answer, and triggers."""
    with served.engine.begin() as connection:
        fill(connection, sample)
    database = Database(served.url)
    dedup = Deduplicator(database, "petitions", COLUMNS, order="created_at")
    dedup.upgrade()
    dedup.scan()
    dedup.attach()
    dedup.scan()
    return database


@pytest.fixture(scope="session")
def scanned_url(tmp_path_factory: pytest.TempPathFactory, sample: Sample) -> str:
    """A SQLite file with an answer, which the tests only read."""
    path = tmp_path_factory.mktemp("web") / "database.db"
    url = URL.create("sqlite", database=str(path))
    with opened("sqlite", url) as served, closing(scanned(served, sample)) as database:
        _flag(database)
        return served.url


def _flag(database: Database) -> None:
    """Store what these petitions have none of: loose groups, partial pairs and pairs of two places."""
    row, pair = database.tables.fingerprint, database.tables.pair
    groups = Deduplicator(database, "petitions").groups()
    loose = [group.representative_key for group in groups[::5]]
    with database.engine.begin() as connection:
        connection.execute(update(row).where(row.c.row_key.in_(loose)).values(is_loose=True))
        ids = connection.execute(select(pair.c.id_a).order_by(pair.c.id_a)).scalars().all()
        step = len(ids) // 3
        for first, flags in ((0, {"kind": KINDS.index("partial")}), (step // 2, {"other_place": True})):
            connection.execute(update(pair).where(pair.c.id_a.in_(ids[first::step])).values(flags))


@pytest.fixture(scope="session")
def client(scanned_url: str) -> Iterator[Client]:
    """One service for the tests that only read."""
    with closing(Database(scanned_url)) as database, running(database) as started:
        yield started


@pytest.fixture(scope="session")
def dedup(scanned_url: str) -> Iterator[Deduplicator]:
    """The same table from Python."""
    with closing(Database(scanned_url)) as database:
        yield Deduplicator(database, "petitions")


@pytest.fixture
def own_database(sqlite_database: Served, sample: Sample) -> Iterator[Database]:
    """A scanned table that the test may change."""
    with closing(scanned(sqlite_database, sample)) as database:
        yield database


StartWith = Callable[[str], Client]


@pytest.fixture
def with_scopes(scanned_url: str, tmp_path: Path) -> Iterator[StartWith]:
    """A function that returns a client whose token has these scopes, all of one service."""
    file = tmp_path / "tokens"
    file.touch()
    with ExitStack() as stack:
        database = stack.enter_context(closing(Database(scanned_url)))
        started = stack.enter_context(running(database, None, ServerSettings(tokens=str(file))))

        def client_with(scopes: str) -> Client:
            token, line = new_token(scopes.split(","), "test")
            add_token(file, line)
            return Client(started.port, token)

        yield client_with
