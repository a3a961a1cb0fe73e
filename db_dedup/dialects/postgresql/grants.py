"""The GRANT statements of each account on PostgreSQL."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, text

from db_dedup.dialects.grants import ACCOUNT_ROLES, TABLE_OWNER, Grants, QuotedNames, fill, script_preparer

_PREPARER: Final = script_preparer("postgresql")
_TEMPLATE: Final = Path(__file__).with_name("sql") / "grants.sql"
_OWNER: Final = text("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass(:name)")


def grants(connection: Connection, wanted: Grants) -> str:
    """Return the statements; the role that owns the user's table is looked up unless it is given."""
    owner = wanted.accounts.get(TABLE_OWNER)
    if owner is None:
        owner = str(connection.execute(_OWNER, {"name": _table(wanted)}).scalar_one())
    return script(wanted, owner)


def script(wanted: Grants, table_owner: str) -> str:
    """Return the statements without asking a database."""
    schema = _PREPARER.quote_schema(wanted.namespace.schema or "")
    names = {
        "schema": schema,
        "table": _table(wanted),
        "table_schema": _PREPARER.quote_schema(wanted.table_schema) if wanted.table_schema else "",
        "table_owner": _PREPARER.quote(table_owner),
        "ours": QuotedNames(lambda base: f"{schema}.{_PREPARER.quote(wanted.namespace.name(base))}"),
        **{role: _PREPARER.quote(wanted.account(role)) for role in ACCOUNT_ROLES},
    }
    return fill(_TEMPLATE, wanted.parts, names)


def _table(wanted: Grants) -> str:
    name = _PREPARER.quote(wanted.table)
    return f"{_PREPARER.quote_schema(wanted.table_schema)}.{name}" if wanted.table_schema else name
