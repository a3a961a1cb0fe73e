"""A cluster of Spark, and servers that its executors reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import create_engine, text

from tests.conftest import private_server
from tests.servers import Database, Server, fresh_database, start_mariadb, start_mysql, start_postgresql_on
from tests.servers.spark import LOOPBACK, Cluster, free_port, start_spark
from tests.thorough import MYSQL


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    started: list[Cluster] = []

    def start() -> Server:
        started.append(start_spark())
        return Server.elsewhere("postgresql", "postgresql://none")

    for _ in private_server("Spark", start):
        yield started[0]
    started[0].stop()


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    """Servers that the executors reach, on ports of this machine; MySQL only where it is asked for."""
    port = free_port()
    with ExitStack() as started:
        one = _started(started, "postgresql", lambda: start_postgresql_on(port))
        two = _started(started, "mariadb", lambda: _reached(start_mariadb))
        yield {"postgresql": one, "mariadb": two}


@pytest.fixture(scope="module")
def mysql_on_a_port() -> Iterator[Server]:
    """A server whose administrator has a password, as MySQL's accounts have."""
    for server in private_server("mysql", lambda: _reached(start_mysql)):
        engine = create_engine(server.url)
        with engine.begin() as connection:
            connection.execute(text("CREATE USER clerk IDENTIFIED BY 'secret-1'"))
            connection.execute(text("GRANT ALL ON *.* TO clerk WITH GRANT OPTION"))
        engine.dispose()
        yield replace(server, url=server.url.set(username="clerk", password="secret-1"))  # noqa: S106


@pytest.fixture(params=["postgresql", "mariadb", MYSQL])
def reached(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Iterator[Database]:
    name = request.param
    server = request.getfixturevalue("mysql_on_a_port") if name == "mysql" else servers[name]
    with fresh_database(server) as database:
        yield database


def _started(stack: ExitStack, name: str, start: Callable[[], Server]) -> Server:
    return stack.enter_context(contextmanager(private_server)(name, start))


def _reached(start: Callable[[Mapping[str, str]], Server]) -> Server:
    port = free_port()
    server = start({"skip-networking": "0", "bind-address": LOOPBACK, "port": str(port)})
    return replace(server, url=server.url.set(host=LOOPBACK, port=port, query={"charset": "utf8mb4"}))
