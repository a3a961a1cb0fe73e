"""A cluster of Spark, and servers that its executors reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.conftest import private_server
from tests.servers import Database, Server, fresh_database, start_mariadb, start_postgresql_on
from tests.servers.spark import Cluster, free_port, start_spark


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
    """Servers that the executors reach, on ports of this machine."""
    port, other = free_port(), free_port()
    settings = {"skip-networking": "0", "bind-address": "127.0.0.1", "port": str(other)}

    def start_other() -> Server:
        server = start_mariadb(settings)
        url = server.url.set(host="127.0.0.1", port=other, query={"charset": "utf8mb4"})
        return replace(server, url=url)

    for one in private_server("postgresql", lambda: start_postgresql_on(port)):
        for two in private_server("mariadb", start_other):
            yield {"postgresql": one, "mariadb": two}


@pytest.fixture(params=["postgresql", "mariadb"])
def reached(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Iterator[Database]:
    with fresh_database(servers[request.param]) as database:
        yield database
