"""The service of the example: it stores what is new, and of equal petitions at the same moment one."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import make_url

from db_dedup import Database, DedupError, Deduplicator, Text, Value
from db_dedup.errors import NotScannedError, TableBusyError
from tests.servers import Database as Served

SERVICE = Path(__file__).parent.parent / "examples" / "fastapi_service" / "service.py"
COLUMNS = {"title": Text(weight=2), "content": Text(), "region": Value()}
BOTH = pytest.mark.parametrize("path", ["/petitions", "/async/petitions"])
NEW = {"title": "关于停水的投诉", "content": "小区已经连续三天停水，物业没有说明原因，请尽快处理。"}


@pytest.fixture(scope="module")
def service() -> ModuleType:
    spec = importlib.util.spec_from_file_location("service", SERVICE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["service"] = module  # FastAPI looks up the types of an endpoint there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Served:
    found: Served = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture
def client(database: Served, service: ModuleType) -> Iterator[TestClient]:
    """The table is scanned, attached, and scanned again, as the example says."""
    service.Base.metadata.create_all(database.engine)
    with closing(Database(database.url)) as ours:
        dedup = Deduplicator(ours, "petitions", COLUMNS, order="created_at")
        dedup.upgrade()
        dedup.scan()
        dedup.attach()
        dedup.scan()
    url = make_url(database.url)
    async_url = url.set(drivername="sqlite+aiosqlite") if database.name == "sqlite" else url
    texts = [one.render_as_string(hide_password=False) for one in (url, async_url)]
    if database.name == "sqlite":
        texts = [f"{text}?timeout=0.2" for text in texts]
    with TestClient(service.make_service(*texts)) as client:
        yield client


@BOTH
def test_a_repeated_petition_is_refused(client: TestClient, path: str) -> None:
    first = client.post(path, json=NEW)
    assert first.status_code == 201
    again = client.post(path, json={**NEW, "content": f"{NEW['content']}谢谢。"})
    assert again.status_code == 409
    assert again.json()["detail"] == {"repeats": [str(first.json()["id"])]}
    other = client.post(path, json={"title": "建议增设图书馆", "content": "老年大学旁边没有可以看书的地方。"})
    assert other.status_code == 201


@BOTH
def test_of_equal_ones_at_the_same_moment_one_is_stored(client: TestClient, path: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.post(path, json=NEW).status_code, range(4)))
    assert answers.count(201) == 1
    assert set(answers) <= {
        201,
        409,
        503,
    }  # 503: SQLite is asked to wait for 0.2 seconds alone


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@BOTH
def test_while_the_table_is_busy_one_is_asked_to_come_again(
    client: TestClient, database: Served, path: str
) -> None:
    with closing(sqlite3.connect(str(make_url(database.url).database))) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = client.post(path, json=NEW)
        other.rollback()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "is not free" in answer.json()["detail"]
    assert client.post(path, json=NEW).status_code == 201


@BOTH
@pytest.mark.parametrize("fault", [{"title": "长" * 201}, {"region": "长" * 51}, {"content": "停\0水"}])
def test_what_cannot_be_stored_is_refused(client: TestClient, path: str, fault: dict[str, str]) -> None:
    assert client.post(path, json=NEW | fault).status_code == 422
    assert client.post(path, json=NEW | {"content": f"{NEW['content']}\r\n谢谢。\n"}).status_code == 201


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@BOTH
def test_an_insert_that_has_to_wait_too_long_is_tried_again(
    client: TestClient, database: Served, service: ModuleType, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del client  # it prepares the table
    monkeypatch.setattr(service, "FIRST_PAUSE_SECONDS", 0)
    url = make_url(database.url).update_query_dict({"options": "-c lock_timeout=100"})
    with_limit = url.render_as_string(hide_password=False)
    with TestClient(service.make_service(with_limit, with_limit)) as impatient:
        with database.engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE petitions IN EXCLUSIVE MODE")
            answer = impatient.post(path, json=NEW)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert impatient.post(path, json=NEW).status_code == 201


class Fails:
    """Work that fails some times before it is done."""

    def __init__(self, *errors: DedupError) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_only_what_passes_is_tried_again(service: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_SECONDS", 0)
    passing: list[Any] = [TableBusyError("busy")] * 5
    assert service.retried(Fails(*passing[:3])) == "done"
    with pytest.raises(TableBusyError):
        service.retried(never := Fails(*passing))
    assert never.calls == service.ATTEMPTS
    with pytest.raises(NotScannedError):
        service.retried(once := Fails(NotScannedError("scan first")))
    assert once.calls == 1
