"""The GRANT statements of each account on MySQL and MariaDB."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from db_dedup.dialects.grants import ACCOUNT_ROLES, Grants, QuotedNames, fill, script_preparer

_PREPARER: Final = script_preparer("mysql")
_TEMPLATE: Final = Path(__file__).with_name("sql") / "grants.sql"


def grants(connection: Connection, wanted: Grants) -> str:
    """Return the statements for the database of the connection."""
    database = str(connection.exec_driver_sql("SELECT DATABASE()").scalar_one())
    return script(wanted, database)


def script(wanted: Grants, database: str) -> str:
    """Return the statements without asking a database."""

    def written(name: str, of: str = database) -> str:
        return f"{_PREPARER.quote(of)}.{_PREPARER.quote(name)}"

    names = {
        "table": written(wanted.table, wanted.table_schema or database),
        "view": written(wanted.view),
        "ours": QuotedNames(lambda base: written(wanted.namespace.name(base))),
        **{role: _account(wanted.account(role)) for role in ACCOUNT_ROLES},
    }
    return fill(_TEMPLATE, wanted.parts, names)


def _account(account: str) -> str:
    """Return an account in quotes, which is given as `user` or `user@host`."""
    user, at, host = account.rpartition("@")
    if not at:
        return _PREPARER.quote(account)
    return f"{_PREPARER.quote_identifier(user)}@{_PREPARER.quote_identifier(host)}"
