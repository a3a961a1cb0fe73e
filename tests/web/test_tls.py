"""The service with a certificate: clients that verify it, and files that cannot be used."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from db_dedup import Database
from db_dedup.app.tokens import add_token, new_token
from db_dedup.config import ServerSettings
from db_dedup.errors import ConfigError
from db_dedup.web.certificates import require_certificate
from tests.web.conftest import running
from tests.web.test_process import PROGRAM

NOW = datetime.now(UTC)


class Files(NamedTuple):
    """PEM files of a certificate."""

    certificate: Path
    key: Path

    @property
    def settings(self) -> ServerSettings:
        return ServerSettings(certificate=str(self.certificate), certificate_key=str(self.key))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issued(authority: trustme.CA, folder: Path, *names: str, until: datetime | None = None) -> Files:
    """Write a certificate for these names, followed by that of its issuer."""
    made = authority.issue_cert(*names, not_before=NOW - timedelta(days=9), not_after=until)
    files = Files(folder / "certificate.pem", folder / "key.pem")
    files.certificate.write_bytes(made.cert_chain_pems[0].bytes() + authority.cert_pem.bytes())
    files.key.write_bytes(made.private_key_pem.bytes())
    return files


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> Files:
    return issued(authority, tmp_path, "localhost")


class Served(NamedTuple):
    """A service with a certificate, and a token of one of its clients."""

    port: int
    token: str
    trusting: ssl.SSLContext


@pytest.fixture
def served(scanned_url: str, files: Files, authority: trustme.CA, tmp_path: Path) -> Iterator[Served]:
    token, line = new_token(["read", "check"], "desk")
    add_token(tmp_path / "tokens", line)
    # All addresses of the machine: without a certificate the service would not start.
    more = {"host": "0.0.0.0", "hosts": ("localhost",), "tokens": str(tmp_path / "tokens")}  # noqa: S104
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    settings = files.settings.model_copy(update={**more, "read_seconds": 2})
    with closing(Database(scanned_url)) as database, running(database, None, settings) as client:
        yield Served(client.port, token, trusting)


def connected(
    served: Served, context: ssl.SSLContext, name: str = "localhost"
) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(name, served.port, timeout=60, context=context)


def test_a_client_that_verifies_the_certificate_is_answered(served: Served) -> None:
    record = {"record": {"title": "路灯坏了", "content": "小区门口的路灯坏了三个月。"}}
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
    with closing(connected(served, served.trusting)) as connection:
        connection.request("POST", "/v1/tables/petitions/check", json.dumps(record), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert "is_duplicate" in json.loads(answer.read())
        connection.request("GET", "/v1/tables")
        assert connection.getresponse().status == 401


def test_a_client_that_cannot_verify_it_sends_no_token(served: Served) -> None:
    stranger = ssl.create_default_context()
    with (
        closing(connected(served, stranger)) as connection,
        pytest.raises(ssl.SSLCertVerificationError, match=r"local issuer|self-signed"),
    ):
        connection.request("GET", "/v1/tables")
    with (
        closing(connected(served, served.trusting, "127.0.0.1")) as connection,
        pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"),
    ):
        connection.request("GET", "/v1/tables")


def test_the_token_of_a_reader_is_in_a_cookie_for_encrypted_connections_alone(served: Served) -> None:
    with closing(connected(served, served.trusting)) as connection:
        connection.request("GET", "/console/login")
        page = connection.getresponse().read().decode()
        value = page.partition('name="form_value" value="')[2].partition('"')[0]
        origin = f"https://localhost:{served.port}"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}
        fields = urlencode({"form_value": value, "token": served.token})
        connection.request("POST", "/console/login", fields, headers)
        answer = connection.getresponse()
        assert answer.status == 303
        cookie = str(answer.getheader("set-cookie")).lower()
    assert "; secure" in cookie
    assert "httponly" in cookie


def test_clients_without_encryption_are_not_answered(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as plain:
        plain.sendall(b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with suppress(ConnectionResetError):
            assert b"HTTP/" not in plain.recv(100)


def test_clients_that_begin_and_go_on_slowly_keep_nobody_out(served: Served) -> None:
    silent = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(20)]
    slow = served.trusting.wrap_socket(
        socket.create_connection(("127.0.0.1", served.port), timeout=60), server_hostname="localhost"
    )
    try:
        slow.sendall(b"GET /v1/docs HTTP/1.1\r\nHost: local")
        with closing(connected(served, served.trusting)) as connection:
            connection.request("GET", "/v1/docs")
            assert connection.getresponse().status == 200
        assert slow.recv(1) == b""
    finally:
        for one in (*silent, slow):
            one.close()


def fault(settings: ServerSettings) -> str:
    """Return what is wrong with the certificate: one line."""
    with pytest.raises(ConfigError) as caught:
        require_certificate(settings)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_files_that_can_be_used(files: Files, authority: trustme.CA, tmp_path: Path) -> None:
    require_certificate(ServerSettings())
    require_certificate(files.settings)
    soon = issued(authority, tmp_path, "localhost", until=NOW + timedelta(days=1))
    require_certificate(soon.settings)


def test_a_missing_and_an_unreadable_file_are_named(files: Files) -> None:
    gone = files._replace(key=files.key.with_name("gone.pem"))
    assert fault(gone.settings) == f"cannot read {gone.key}, which [server] names: No such file or directory"
    folder = files._replace(certificate=files.certificate.parent)
    assert fault(folder.settings).endswith("Is a directory")
    if os.geteuid() != 0:
        files.key.chmod(0)
        assert fault(files.settings).endswith("Permission denied")


def test_a_key_of_another_certificate(authority: trustme.CA, files: Files, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = issued(authority, tmp_path / "other", "localhost")
    mixed = files._replace(key=other.key)
    assert (
        fault(mixed.settings) == f"the key {other.key} does not belong to the certificate {files.certificate}"
    )


def test_files_in_another_form(files: Files) -> None:
    exchanged = Files(files.key, files.certificate)
    assert "both have to be PEM files" in fault(exchanged.settings)
    files.certificate.write_bytes(b"\x00 not PEM")
    assert "both have to be PEM files" in fault(files.settings)


def test_a_key_with_a_password_is_not_asked_for(files: Files) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    form, encoding = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    secret = serialization.BestAvailableEncryption(b"secret")
    files.key.write_bytes(key.private_bytes(encoding, form, secret))
    assert fault(files.settings).startswith(f"the key {files.key} is encrypted")


@pytest.mark.parametrize(("days", "said"), [(-1, "certificate has expired"), (-8, "certificate has expired")])
def test_an_expired_certificate(authority: trustme.CA, tmp_path: Path, days: int, said: str) -> None:
    files = issued(authority, tmp_path, "localhost", until=NOW + timedelta(days=days))
    expected = f"clients will not accept the certificate {files.certificate}: {said}"
    assert fault(files.settings) == expected


def test_the_command_says_so_and_does_not_start(
    authority: trustme.CA, tmp_path: Path, scanned_url: str
) -> None:
    files = issued(authority, tmp_path, "localhost", until=NOW - timedelta(days=1))
    names = f"certificate = {str(files.certificate)!r}\ncertificate_key = {str(files.key)!r}"
    text = f"[database]\nurl = {json.dumps(scanned_url)}\n[server]\nport = 0\n{names}\n"
    (tmp_path / "dedup.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, "serve"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "certificate has expired" in ended.stderr
    assert "Traceback" not in ended.stderr
