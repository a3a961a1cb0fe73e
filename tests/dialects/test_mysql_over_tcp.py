"""MySQL's own way to check a password, over TCP: without TLS the driver encrypts it by the server's key."""

import secrets
import socket
from collections.abc import Iterator
from functools import partial

import pytest
from sqlalchemy import URL, text

from db_dedup.dialects import open_engine
from db_dedup.errors import ConfigError
from tests.conftest import private_server
from tests.servers import Server, start_mysql

pytestmark = pytest.mark.thorough
PASSWORD = "s3cret"  # noqa: S105 - made up
WITHOUT_TLS = {"ssl_disabled": "true"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    settings = {"skip-networking": "0", "bind-address": "127.0.0.1", "port": port}
    yield from private_server("mysql", partial(start_mysql, settings))


@pytest.fixture
def clerk(server: Server) -> Iterator[URL]:
    """The URL of an account of its own: the server remembers a checked password even past DROP USER."""
    name = f"clerk_{secrets.token_hex(4)}"
    administrator = open_engine(server.url.set(database="mysql").render_as_string(hide_password=False))
    with administrator.connect() as connection:
        connection.execute(text(f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'"))
        port = connection.scalar(text("SELECT @@port"))
        yield URL.create("mysql", name, PASSWORD, "127.0.0.1", port, database="information_schema")
        connection.execute(text(f"DROP USER {name}@'127.0.0.1'"))
    administrator.dispose()


@pytest.mark.parametrize("tls", [{}, WITHOUT_TLS], ids=["tls", "plain"])
def test_a_password_over_tcp(clerk: URL, tls: dict[str, str]) -> None:
    engine = open_engine(clerk.set(query=tls).render_as_string(hide_password=False))
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT CURRENT_USER()")) == f"{clerk.username}@127.0.0.1"
        encrypted = connection.execute(text("SHOW STATUS LIKE 'Ssl_cipher'")).one()[1]
    engine.dispose()
    assert bool(encrypted) is not bool(tls)


def test_the_package_that_encrypts_is_missing(clerk: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymysql._auth._have_cryptography", False)
    engine = open_engine(clerk.set(query=WITHOUT_TLS).render_as_string(hide_password=False))
    with pytest.raises(ConfigError, match=r'cryptography.*pip install "db-dedup\[mysql\]"') as refused:
        engine.connect()
    assert PASSWORD not in str(refused.value)
    engine.dispose()
