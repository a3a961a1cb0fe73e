"""The GRANT statements of each account on MySQL and MariaDB."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.sql.compiler import IdentifierPreparer

from db_dedup.dialects.grants import PARTS, Grants, QuotedNames, fill

_TEMPLATE: Final = Path(__file__).with_name("sql") / "grants.sql"


def grants(connection: Connection, wanted: Grants) -> str:
    """The statements, for the database that the connection leads to."""
    database = str(connection.exec_driver_sql("SELECT DATABASE()").scalar_one())
    return script(connection.dialect.identifier_preparer, wanted, database)


def script(preparer: IdentifierPreparer, wanted: Grants, database: str) -> str:
    """The statements, without a look at a database."""

    def written(name: str, of: str = database) -> str:
        return f"{preparer.quote(of)}.{preparer.quote(name)}"

    names = {
        "table": written(wanted.table, wanted.table_schema or database),
        "view": written(wanted.view),
        "ours": QuotedNames(lambda base: written(wanted.namespace.name(base))),
        **{part: _account(preparer, wanted.account(part)) for part in PARTS},
    }
    return fill(_TEMPLATE, wanted.parts, names)


def _account(preparer: IdentifierPreparer, account: str) -> str:
    """`user` or `user@host`."""
    user, at, host = account.rpartition("@")
    if not at:
        return preparer.quote(account)
    return f"{preparer.quote_identifier(user)}@{preparer.quote_identifier(host)}"
