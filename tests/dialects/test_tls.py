"""MariaDB by TLS: what a URL has to name so that only the right server is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme
from sqlalchemy import URL, text
from sqlalchemy.exc import DBAPIError

from db_dedup.dialects import open_engine
from tests.conftest import private_server
from tests.servers import start_mariadb

EXPECTED_NAME = "localhost"
"""The name that PyMySQL looks for in the certificate of a server behind a socket."""


@dataclass(frozen=True)
class Encrypting:
    """A server with a certificate for `name`, and a folder with that of its authority and of another one."""

    url: URL
    name: str
    folder: Path

    def refusal(self, authority: str, **options: str) -> str:
        """Why a connection is not made; "" if one is made, by TLS."""
        url = self.url.update_query_dict({"ssl_ca": str(self.folder / authority), **options})
        engine = open_engine(url.render_as_string(hide_password=False))
        try:
            with engine.connect() as connection:
                assert connection.execute(text("SHOW STATUS LIKE 'Ssl_cipher'")).one()[1]
        except DBAPIError as error:
            return str(error.orig)
        finally:
            engine.dispose()
        return ""


@pytest.fixture(scope="module", params=[EXPECTED_NAME, "another.example"])
def server(request: pytest.FixtureRequest) -> Iterator[Encrypting]:
    authority = trustme.CA()
    issued = authority.issue_cert(request.param)
    contents = {
        "authority.pem": authority.cert_pem,
        "another.pem": trustme.CA().cert_pem,
        "certificate.pem": issued.cert_chain_pems[0],
        "key.pem": issued.private_key_pem,
    }
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in contents.items():
            (folder / file).write_bytes(content.bytes())
        folder.chmod(0o755)  # the server runs as another account
        own = {"ssl_cert": str(folder / "certificate.pem"), "ssl_key": str(folder / "key.pem")}
        for started in private_server("mariadb", partial(start_mariadb, own)):
            url = started.url.difference_update_query(["ssl_disabled"]).set(database="mysql")
            yield Encrypting(url, request.param, folder)


def test_the_authority_verifies_certificate_and_name(server: Encrypting) -> None:
    refused = server.refusal("authority.pem")
    assert ("Hostname mismatch" in refused) == (server.name != EXPECTED_NAME)
    assert bool(refused) == (server.name != EXPECTED_NAME)
    assert "certificate verify failed" in server.refusal("another.pem")


def test_the_name_can_be_left_out(server: Encrypting) -> None:
    assert not server.refusal("authority.pem", ssl_check_hostname="false")
    assert "certificate verify failed" in server.refusal("another.pem", ssl_check_hostname="false")
