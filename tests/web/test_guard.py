"""Who is answered: names, origins, tokens, sizes, times. What is logged."""

from __future__ import annotations

import hmac
import http.client
import logging
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from select import select
from typing import NamedTuple
from urllib.parse import quote

import pytest

from db_dedup import Database
from db_dedup.app.tokens import TOKENS_VARIABLE, Tokens, add_token, new_token
from db_dedup.config import ServerSettings
from db_dedup.errors import ConfigError, UnknownNameError
from tests.web.conftest import Client, StartWith, running

CHECK = "/tables/petitions/check"
LABELS = "/tables/petitions/labels"
RECORD = {"record": {"title": "路灯坏了三个月无人处理", "content": "请尽快派人修理"}}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::2]"])
def test_another_name_is_refused_on_loopback_too(client: Client, host: str) -> None:
    """Else a page could read the answers after its name was pointed to 127.0.0.1."""
    assert client.send("GET", "/tables", headers={"Host": host}).problem == "host-refused"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8765"])
def test_the_names_of_loopback(client: Client, host: str) -> None:
    assert client.send("GET", "/tables", headers={"Host": host}).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:1", "http://[", "x"])
@pytest.mark.parametrize("path", ["/tables", CHECK])
def test_a_page_of_another_site_is_refused(client: Client, origin: str, path: str) -> None:
    body = RECORD if path == CHECK else None
    answer = client.send("POST" if body else "GET", path, body, {"Origin": origin})
    assert answer.problem == "origin-refused"
    assert "access-control-allow-origin" not in answer.headers


def test_the_own_origin_and_a_declared_one(client: Client, scanned_url: str) -> None:
    own = f"http://127.0.0.1:{client.port}"
    assert client.send("GET", "/tables", headers={"Origin": own}).status == 200
    declared = ServerSettings(origins=("https://desk.example",))
    with closing(Database(scanned_url)) as database, running(database, None, declared) as other:
        assert other.send("GET", "/tables", headers={"Origin": "https://desk.example"}).status == 200


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"]
)
def test_a_form_of_a_page_is_refused(client: Client, media_type: str) -> None:
    """A browser sends these to other sites without asking them first."""
    assert client.send("POST", CHECK, RECORD, {"Content-Type": media_type}).problem == "not-json"


def test_scopes(with_scopes: StartWith) -> None:
    read, check, label = with_scopes("read"), with_scopes("check"), with_scopes("label")
    labels = {"labels": [{"key_a": "no", "key_b": "row", "is_duplicate": True}]}
    assert [one.get("/tables/petitions/groups").status for one in (read, check, label)] == [200, 403, 403]
    assert [one.post(CHECK, RECORD).status for one in (read, check, label)] == [403, 200, 403]
    assert [one.post(LABELS, labels).status for one in (read, check, label)] == [403, 403, 200]
    assert [one.get(LABELS).status for one in (read, check, label)] == [200, 403, 403]
    with_texts = {**RECORD, "differences": True}
    assert check.post(CHECK, with_texts).problem == "scope-missing"
    assert with_scopes("check,read").post(CHECK, with_texts).status == 200


def test_every_route_needs_a_token_but_those_that_show_nothing(with_scopes: StartWith) -> None:
    known = with_scopes("read")
    nobody = Client(known.port)
    document = nobody.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method in methods:
            answer = nobody.send(method.upper(), path.removeprefix("/v1"), {} if method == "post" else None)
            if path.startswith("/v1/health/"):
                assert answer.status in {200, 503}
            else:
                assert answer.problem == "token-missing", path
                assert answer.headers["www-authenticate"].startswith("Bearer")
    assert nobody.get("/nothing").problem == "token-missing"


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Bearer x", "Basic {token}", "{token}", "Bearer {token}x"]
)
def test_a_wrong_token_is_refused(with_scopes: StartWith, given: str) -> None:
    known = with_scopes("read")
    nobody = Client(known.port)
    header = {"Authorization": given.format(token=known.token)}
    assert nobody.send("GET", "/tables", headers=header).problem == "token-missing"
    assert nobody.send("GET", f"/tables?token={known.token}").problem == "token-missing"


def test_a_token_is_compared_in_constant_time_with_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    given = [new_token(["read"], f"client-{number}") for number in range(3)]
    for _, line in given:
        add_token(file, line)
    compared = []
    compare = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return compare(one, other)

    monkeypatch.setattr("db_dedup.app.tokens.hmac.compare_digest", counted)
    tokens = Tokens(file)
    first = tokens.client(given[0][0])
    assert first is not None
    assert first.name == "client-0"
    assert len(compared) == 3


def test_a_token_is_stored_as_a_digest_that_only_the_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token, line = new_token(["read", "label"], "desk")
    add_token(file, line)
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(token) > 40


def test_a_removed_token_counts_no_longer(with_scopes: StartWith, tmp_path: Path) -> None:
    known = with_scopes("read")
    assert known.get("/tables").status == 200
    (tmp_path / "tokens").write_text("# nobody\n")
    assert known.get("/tables").problem == "token-missing"
    (tmp_path / "tokens").unlink()
    assert known.get("/tables").problem == "failed"


def test_a_line_that_is_no_digest_is_refused_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token, line = new_token(["read"], "desk")
    file.write_text(f"desk read {token}\n")
    with pytest.raises(ConfigError, match="line 1") as caught:
        Tokens(file)
    assert token not in str(caught.value)
    file.write_text(line.replace("read", "write"))
    with pytest.raises(UnknownNameError, match="scope"):
        Tokens(file)


def test_tokens_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    (one, line), (other, second) = new_token(["read"], "one"), new_token(["check"], "other")
    monkeypatch.setenv(TOKENS_VARIABLE, f"{line};{second}")
    tokens = Tokens()
    assert tokens.are_used
    found = [tokens.client(token) for token in (one, other, "x")]
    assert [client and client.name for client in found] == ["one", "other", None]


@pytest.mark.parametrize(
    ("settings", "has_tokens", "fault"),
    [
        ({"host": "0.0.0.0"}, False, "need tokens"),  # noqa: S104
        ({"host": "::"}, True, "unencrypted"),
        ({"host": "192.0.2.1"}, True, "unencrypted"),
        ({"hosts": ("desk.example",)}, False, "need tokens"),
        ({"certificate": "c.pem"}, True, "belong together"),
        ({"host": "0.0.0.0", "proxies": ("192.0.2.7",)}, False, "need tokens"),  # noqa: S104
        ({"host": "0.0.0.0", "proxies": ("192.0.2.7",)}, True, None),  # noqa: S104
        ({"host": "0.0.0.0", "certificate": "c", "certificate_key": "k"}, True, None),  # noqa: S104
        ({"hosts": ("desk.example",)}, True, None),
        ({"host": "::1"}, False, None),
        ({}, False, None),
    ],
)
def test_what_other_machines_reach_has_tokens_and_encryption(
    settings: dict[str, object], has_tokens: bool, fault: str | None
) -> None:
    server = ServerSettings.model_validate(settings)
    if fault is None:
        server.require_safe(has_tokens=has_tokens)
    else:
        with pytest.raises(ConfigError, match=fault):
            server.require_safe(has_tokens=has_tokens)


def test_an_unsafe_service_does_not_start(scanned_url: str) -> None:
    everywhere = ServerSettings(host="0.0.0.0")  # noqa: S104
    with (
        closing(Database(scanned_url)) as database,
        pytest.raises(ConfigError, match="need tokens"),
        running(database, None, everywhere),
    ):
        pass


def test_with_a_declared_proxy_nobody_else_is_answered(scanned_url: str) -> None:
    for proxies, status in (
        (("192.0.2.7",), 403),
        (("192.0.2.0/24", "::/1"), 403),
        (("127.0.0.1",), 200),
        (("192.0.2.7", "127.0.0.0/8"), 200),
    ):
        server = ServerSettings(proxies=proxies)
        with closing(Database(scanned_url)) as database, running(database, None, server) as client:
            answer = client.send("GET", "/tables", headers={"X-Forwarded-For": "192.0.2.7"})
            assert answer.status == status


class Held(NamedTuple):
    """Set by the service when a call begins, and by the test when the calls may go on."""

    has_begun: threading.Event
    goes_on: threading.Event


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Calls of the database that wait until the test lets them go on."""
    names, held = Database.watched_names, Held(threading.Event(), threading.Event())

    def slow(self: Database) -> list[str]:
        held.has_begun.set()
        assert held.goes_on.wait(60)
        return names(self)

    monkeypatch.setattr(Database, "watched_names", slow)
    yield held
    held.goes_on.set()


def test_a_call_that_takes_too_long(scanned_url: str, held: Held) -> None:
    server = ServerSettings(answer_seconds=1)
    with closing(Database(scanned_url)) as database, running(database, None, server) as client:
        assert client.get("/tables").problem == "timed-out"
        held.goes_on.set()


def test_too_many_calls(scanned_url: str, held: Held) -> None:
    """One has the only thread, one waits for it, and the third is refused."""
    server = ServerSettings(threads=1, max_waiting=1)
    with closing(Database(scanned_url)) as database, running(database, None, server) as client:
        connections = [http.client.HTTPConnection("127.0.0.1", client.port, timeout=60) for _ in range(3)]
        for connection in connections:
            connection.request("GET", "/v1/tables")
        assert held.has_begun.wait(60)
        answered, _, _ = select([connection.sock for connection in connections], [], [], 60)
        statuses = {
            connection: connection.getresponse().status
            for connection in connections
            if connection.sock in answered
        }
        assert [*statuses.values()] == [503]
        held.goes_on.set()
        others = [connection for connection in connections if connection not in statuses]
        assert [connection.getresponse().status for connection in others] == [200, 200]
        for connection in connections:
            connection.close()


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/docs/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/tables/..%2f..%2fetc%2fpasswd/groups",
        "/docs/",
        "//tables",
    ],
)
def test_no_path_leads_to_a_file(client: Client, path: str) -> None:
    assert client.send("GET", path).problem in {"not-found", "unknown-table"}


INJECTED = ["x' OR '1'='1", 'x"; DROP TABLE petitions; --', "petitions; SELECT 1", "%00", "1 UNION SELECT 1"]


@pytest.mark.parametrize("value", INJECTED)
def test_names_and_keys_are_never_sql(client: Client, value: str) -> None:
    named = quote(value, safe="")
    assert client.get(f"/tables/{named}/groups").problem == "unknown-table"
    assert client.get("/tables/petitions/group", row_key=value).problem == "unknown-row"
    assert client.get("/tables/petitions/explanation", key_a=value, key_b="1").problem == "unknown-row"
    assert client.post(CHECK, {"record": {value: value}}).problem == "invalid"
    assert client.post(CHECK, {"record": {"title": value}}).status == 200
    outcome = client.post(LABELS, {"labels": [{"key_a": value, "key_b": "1", "is_duplicate": True}]})
    assert outcome.json()["kept"] == 0
    assert len(client.get("/tables/petitions/groups").json()["groups"]) > 1


@pytest.mark.parametrize("cursor", ["x", "W10", "WzEsMl0", "bnVsbA", "WyIxIiwieCJd", "=", "é", "W" * 19_000])
@pytest.mark.parametrize("what", ["pairs", "groups", "labels", "group"])
def test_a_cursor_that_is_none_of_ours(client: Client, what: str, cursor: str) -> None:
    parameters = {"row_key": "1"} if what == "group" else {}
    assert client.get(f"/tables/petitions/{what}", cursor=cursor, **parameters).problem == "invalid"


def test_an_unexpected_error_shows_neither_its_text_nor_a_trace(
    scanned_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> list[str]:
        raise RuntimeError("the text of a row")

    monkeypatch.setattr(Database, "watched_names", fail)
    with (
        caplog.at_level(logging.DEBUG),
        closing(Database(scanned_url)) as database,
        running(database) as client,
    ):
        answer = client.get("/tables")
    assert answer.problem == "failed"
    assert "text of a row" not in answer.body.decode() + caplog.text
    assert "RuntimeError in " in caplog.text


def test_the_log_has_no_texts_and_no_keys(with_scopes: StartWith, caplog: pytest.LogCaptureFixture) -> None:
    client = with_scopes("read,check,label")
    with caplog.at_level(logging.DEBUG):
        client.post(CHECK, {"record": {"title": "信访内容甲", "content": "信访内容乙"}})
        client.post(CHECK, {"record": {"信访内容丙": "信访内容丁"}})
        client.get("/tables/petitions/group", row_key="key-of-a-row")
        client.get("/secret-path")
        client.send("SECRET", "/tables")
    text = caplog.text
    assert "POST /v1/tables/{table}/check 200" in text
    assert " test" in text
    for hidden in ("信访", "key-of-a-row", "secret-path", "SECRET", str(client.token)):
        assert hidden not in text


def test_a_password_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        closing(Database("postgresql://office:hunter2@127.0.0.1:1/office")) as database,
        running(database) as client,
    ):
        answers = [client.get("/tables"), client.get("/status"), client.get("/health/ready")]
    assert {answer.problem for answer in answers} == {"busy"}
    assert "hunter2" not in caplog.text + "".join(answer.body.decode() for answer in answers)


def test_a_token_is_added_behind_a_last_line_without_an_end(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    first, line = new_token(["read"], "desk")
    file.write_text(f"{line}\n# a note", encoding="utf-8")
    second, line = new_token(["check"], "other")
    add_token(file, line)
    tokens = Tokens(file)
    for token, name in ((first, "desk"), (second, "other")):
        client = tokens.client(token)
        assert client is not None
        assert client.name == name


def test_no_page_tells_where_the_tokens_are(with_scopes: StartWith, tmp_path: Path) -> None:
    known = with_scopes("read")
    (tmp_path / "tokens").write_text("broken\n")
    connection = http.client.HTTPConnection("127.0.0.1", known.port)
    connection.request("GET", "/console/login")
    answer = connection.getresponse()
    assert answer.status == 500
    assert str(tmp_path) not in answer.read().decode()
    connection.close()
