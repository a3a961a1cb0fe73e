"""Accounts and URLs that may do nothing but read."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import make_url

from tests.dialects.tables import run
from tests.servers import Database

CLERK = "dedup_test_clerk"


@contextmanager
def reader_of(database: Database, password: str | None = None) -> Iterator[str]:
    """A URL whose sessions can read `petitions` and nothing else, and cannot write at all."""
    url = make_url(database.url)
    if database.name == "sqlite":
        yield f"sqlite:///file:{url.database}?mode=ro&uri=true"
        return
    secret = f" IDENTIFIED BY '{password or ''}'"
    make, drop = {
        "postgresql": (
            [f"CREATE ROLE {CLERK} LOGIN", f"GRANT SELECT ON petitions TO {CLERK}"],
            [f"DROP OWNED BY {CLERK}", f"DROP ROLE {CLERK}"],
        ),
        "mariadb": (
            [f"CREATE USER {CLERK}{secret}", f"GRANT SELECT ON {url.database}.petitions TO {CLERK}"],
            [f"DROP USER {CLERK}"],
        ),
    }[database.name]
    run(database, *make)
    try:
        yield url.set(username=CLERK, password=password).render_as_string(hide_password=False)
    finally:
        run(database, *drop)


@contextmanager
def account(database: Database, password: str) -> Iterator[str]:
    """The URL of an account that may do everything in a MariaDB database of ours."""
    url = make_url(database.url)
    run(
        database,
        f"CREATE USER {CLERK} IDENTIFIED BY '{password}'",
        f"GRANT ALL ON {url.database}.* TO {CLERK}",
    )
    try:
        yield url.set(username=CLERK, password=password).render_as_string(hide_password=False)
    finally:
        run(database, f"DROP USER {CLERK}")
