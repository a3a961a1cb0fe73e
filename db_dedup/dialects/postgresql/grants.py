"""The GRANT statements of each account on PostgreSQL."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.sql.compiler import IdentifierPreparer

from db_dedup.dialects.grants import PARTS, TABLE_OWNER, Grants, QuotedNames, fill

_TEMPLATE: Final = Path(__file__).with_name("sql") / "grants.sql"
_OWNER: Final = text("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass(:name)")


def grants(connection: Connection, wanted: Grants) -> str:
    """The statements; the role that owns the user's table is looked up unless it is given."""
    preparer = connection.dialect.identifier_preparer
    owner = wanted.accounts.get(TABLE_OWNER)
    if owner is None:
        owner = str(connection.execute(_OWNER, {"name": _table(preparer, wanted)}).scalar_one())
    return script(preparer, wanted, owner)


def script(preparer: IdentifierPreparer, wanted: Grants, table_owner: str) -> str:
    """The statements, without a look at a database."""
    schema = preparer.quote_schema(wanted.namespace.schema or "")
    names = {
        "schema": schema,
        "table": _table(preparer, wanted),
        "table_schema": preparer.quote_schema(wanted.table_schema) if wanted.table_schema else "",
        "table_owner": preparer.quote(table_owner),
        "ours": QuotedNames(lambda base: f"{schema}.{preparer.quote(wanted.namespace.name(base))}"),
        **{part: preparer.quote(wanted.account(part)) for part in PARTS},
    }
    return fill(_TEMPLATE, wanted.parts, names)


def _table(preparer: IdentifierPreparer, wanted: Grants) -> str:
    name = preparer.quote(wanted.table)
    return f"{preparer.quote_schema(wanted.table_schema)}.{name}" if wanted.table_schema else name
