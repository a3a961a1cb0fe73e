"""Bodies that are too large, clients that are slow, requests that may be read in two ways."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from db_dedup import Database
from db_dedup.config import ServerSettings
from db_dedup.web import server as server_module
from tests.web.conftest import Client, running
from tests.web.test_guard import CHECK


def test_a_body_that_says_that_it_is_too_large(client: Client) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)) as connection:
        connection.putrequest("POST", f"/v1{CHECK}")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "1000001")
        connection.endheaders()
        assert connection.getresponse().status == 413


def test_a_body_that_turns_out_to_be_too_large(client: Client) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)) as connection:
        pieces = iter([*[b" " * 100_000] * 10, b" "])
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/v1{CHECK}", pieces, headers, encode_chunked=True)
        assert connection.getresponse().status == 413


@pytest.fixture(scope="module")
def hurried(scanned_url: str) -> Iterator[Client]:
    """A service that waits for slow clients for a second alone."""
    server = ServerSettings(read_seconds=1)
    with closing(Database(scanned_url)) as database, running(database, None, server) as client:
        yield client


HEAD = b"POST /v1/tables/petitions/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"", b""),
        (HEAD, b""),
        (HEAD + b"Content-Length: 100\r\n\r\n{", b"HTTP/1.1 408 "),
    ],
)
def test_a_slow_client_is_given_up(hurried: Client, sent: bytes, answered: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=30) as connection:
        connection.sendall(sent)
        received = connection.recv(10_000)
        assert received.startswith(answered)
        while received:
            received = connection.recv(10_000)


def test_a_client_that_sends_byte_by_byte_is_given_up(hurried: Client) -> None:
    sent, begun = 0, time.monotonic()
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=30) as connection, suppress(OSError):
        while sent < 300:
            connection.sendall(b"G")
            time.sleep(0.1)
            sent += 1
    assert sent < 300
    assert time.monotonic() - begun > 0.9  # a slow machine takes longer, and only a closed door less


def test_a_client_that_does_not_take_its_answers_is_given_up(
    scanned_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("db_dedup.web.guard._WRITE_SECONDS", 0)
    server = ServerSettings(read_seconds=1, answer_seconds=1)
    ask = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with closing(Database(scanned_url)) as database, running(database, None, server) as client:
        with socket.socket() as greedy, suppress(OSError):
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.settimeout(30)
            greedy.connect(("127.0.0.1", client.port))
            greedy.sendall(ask * 500)
            until = time.monotonic() + 30
            while "took more than" not in caplog.text and time.monotonic() < until:
                time.sleep(0.1)
        assert "a client took more than 2 s to take its answer" in caplog.text
        assert client.get("/tables").status == 200


GET = b"GET /v1/tables HTTP/1.1\r\n"
POST = b"POST /v1/tables/petitions/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (GET + b"Host: localhost\r\nX: " + b"x" * 70_000, {400}),
        (GET + b"Host: localhost\r\nHost: evil.example\r\n\r\n", {400, 421}),
        (GET + b"\r\n", {400, 421}),
        (b"GET http://evil.example/v1/tables HTTP/1.1\r\nHost: localhost\r\n\r\n", {404}),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", {400}),
        (POST + b"Content-Length: -1\r\n\r\n", {400}),
        (POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n", {400, 501}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400}),
    ],
    ids=["headers", "two hosts", "no host", "another site", "two lengths", "less", "coding", "tls"],
)
def test_requests_that_may_be_read_in_two_ways_are_refused(
    client: Client, sent: bytes, statuses: set[int]
) -> None:
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as connection:
        connection.sendall(sent)
        if sent.startswith(b"\x16"):
            connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(10_000)
        while not answer.endswith(b"}"):
            answer += connection.recv(10_000) or b"(no end)}"
    assert int(answer.split(b" ")[1]) in statuses, answer
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["status"] in statuses


def test_one_connection_too_many(
    scanned_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Database(scanned_url)) as database, running(database) as client:
        assert client.get("/tables").status == 200
        monkeypatch.setattr(server_module, "_MOST_CONNECTIONS", 2)
        with socket.create_connection(("127.0.0.1", client.port), timeout=60) as other:
            other.sendall(GET)  # so that it is accepted
            refused = client.get("/tables")
            assert refused.problem == "busy"
            assert refused.headers["retry-after"]
        assert "there are 2 connections" in caplog.text
        for _ in range(100):  # until the server knows that the other has gone
            if client.get("/tables").status == 200:
                break
            time.sleep(0.05)
        assert client.get("/tables").status == 200
