"""TLS: what a URL has to name so that only the right server is accepted."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

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


def assert_verified(refusal: Callable[[str], str], is_named: bool, mismatch: str) -> None:
    """Only a certificate of the right authority and for the server's own name is accepted.

    Args:
        refusal: returns why a connection is not made that trusts this authority, "" if one is made.
        is_named: whether the server's certificate is for its name.
        mismatch: what the refusal says of another name.
    """
    refused = refusal("authority.pem")
    assert bool(refused) != is_named
    assert (mismatch in refused) != is_named
    assert "certificate verify failed" in refusal("another.pem")


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
    is_named = mariadb.name == NAME_OF_SOCKET
    assert_verified(partial(mariadb_refusal, mariadb), is_named, "Hostname mismatch")


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
    trusted = str(server.folder / authority)
    return server.refusal(IS_ENCRYPTED, sslmode="verify-full", sslrootcert=trusted)


def test_postgresql_the_mode_verifies_certificate_and_name(postgresql: Encrypting) -> None:
    is_named = postgresql.name == LOOPBACK
    assert_verified(partial(postgresql_refusal, postgresql), is_named, "does not match host name")


def test_postgresql_encrypts_and_verifies_nothing_unless_told(postgresql: Encrypting) -> None:
    assert not postgresql.refusal(IS_ENCRYPTED)
