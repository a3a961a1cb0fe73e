"""TLS: what a URL has to name so that only the right server is accepted."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trustme
from sqlalchemy import URL, create_engine, text
from sqlalchemy.exc import DBAPIError

from db_dedup.dialects import open_engine
from tests.conftest import private_server
from tests.servers import Server, start_mariadb, start_postgresql_on

LOOPBACK = "127.0.0.1"
NAME_OF_SOCKET = "localhost"
"""The name that PyMySQL looks for in the certificate of a server behind a socket."""
ANOTHER_NAME = "another.example"
IS_ENCRYPTED = "SELECT CASE WHEN ssl THEN cipher ELSE '' END FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
RELOAD_SECONDS = 30.0


@dataclass(frozen=True)
class Encrypting:
    """A server with a certificate for `name`, and a folder with that of its authority and of another one."""

    url: URL
    name: str
    folder: Path

    def refusal(self, query: str, **options: str) -> str:
        """Why a connection is not made; "" if one is made, by TLS: the query ends with a cipher."""
        engine = open_engine(self.url.update_query_dict(options).render_as_string(hide_password=False))
        try:
            with engine.connect() as connection:
                assert connection.execute(text(query)).one()[-1]
        except DBAPIError as error:
            return str(error.orig)
        finally:
            engine.dispose()
        return ""


@contextmanager
def certificates(name: str) -> Iterator[Path]:
    """A folder with a certificate for this name, its key, its authority, and another authority."""
    authority = trustme.CA()
    issued = authority.issue_cert(name)
    contents = {
        "authority.pem": authority.cert_pem,
        "another.pem": trustme.CA().cert_pem,
        "certificate.pem": issued.cert_chain_pems[0],
        "key.pem": issued.private_key_pem,
    }
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file, content in contents.items():
            (folder / file).write_bytes(content.bytes())
        folder.chmod(0o755)  # the server runs as another account
        yield folder


@pytest.fixture(scope="module", params=[NAME_OF_SOCKET, ANOTHER_NAME])
def mariadb(request: pytest.FixtureRequest) -> Iterator[Encrypting]:
    with certificates(request.param) as folder:
        own = {"ssl_cert": str(folder / "certificate.pem"), "ssl_key": str(folder / "key.pem")}
        for started in private_server("mariadb", partial(start_mariadb, own)):
            url = started.url.difference_update_query(["ssl_disabled"]).set(database="mysql")
            yield Encrypting(url, request.param, folder)


def mariadb_refusal(server: Encrypting, authority: str, **options: str) -> str:
    return server.refusal("SHOW STATUS LIKE 'Ssl_cipher'", ssl_ca=str(server.folder / authority), **options)


def test_mariadb_the_authority_verifies_certificate_and_name(mariadb: Encrypting) -> None:
    refused = mariadb_refusal(mariadb, "authority.pem")
    assert ("Hostname mismatch" in refused) == (mariadb.name != NAME_OF_SOCKET)
    assert bool(refused) == (mariadb.name != NAME_OF_SOCKET)
    assert "certificate verify failed" in mariadb_refusal(mariadb, "another.pem")


def test_mariadb_the_name_can_be_left_out(mariadb: Encrypting) -> None:
    assert not mariadb_refusal(mariadb, "authority.pem", ssl_check_hostname="false")
    assert "certificate verify failed" in mariadb_refusal(mariadb, "another.pem", ssl_check_hostname="false")


@pytest.fixture(scope="module", params=[LOOPBACK, ANOTHER_NAME])
def postgresql(request: pytest.FixtureRequest) -> Iterator[Encrypting]:
    with socket.create_server((LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    with certificates(request.param) as folder:
        for started in private_server("postgresql", partial(start_postgresql_on, port)):
            encrypt(started, folder)
            yield Encrypting(started.url, request.param, folder)


def encrypt(server: Server, folder: Path) -> None:
    """Let the server write its key by itself: it refuses one that others could read."""
    engine = create_engine(server.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for file, name in (("certificate.pem", "server.crt"), ("key.pem", "server.key")):
            lines = f"SELECT unnest(string_to_array('{(folder / file).read_text()}', chr(10)))"
            connection.exec_driver_sql(f"COPY ({lines}) TO PROGRAM 'umask 077; cat > {name}'")
        connection.exec_driver_sql("ALTER SYSTEM SET ssl = on")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    deadline = time.monotonic() + RELOAD_SECONDS
    while True:
        engine.dispose()
        with engine.connect() as connection:
            if connection.exec_driver_sql(IS_ENCRYPTED).scalar_one():
                break
        assert time.monotonic() < deadline, "the server has not read its settings again"
        time.sleep(0.02)
    engine.dispose()


def postgresql_refusal(server: Encrypting, authority: str) -> str:
    options: dict[str, Any] = {"sslmode": "verify-full", "sslrootcert": str(server.folder / authority)}
    return server.refusal(IS_ENCRYPTED, **options)


def test_postgresql_the_mode_verifies_certificate_and_name(postgresql: Encrypting) -> None:
    refused = postgresql_refusal(postgresql, "authority.pem")
    assert ("does not match host name" in refused) == (postgresql.name != LOOPBACK)
    assert bool(refused) == (postgresql.name != LOOPBACK)
    assert "certificate verify failed" in postgresql_refusal(postgresql, "another.pem")


def test_postgresql_encrypts_and_verifies_nothing_unless_told(postgresql: Encrypting) -> None:
    assert not postgresql.refusal(IS_ENCRYPTED)
