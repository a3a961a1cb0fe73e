"""The statements that give each account of a table the rights it needs, and no others."""

from collections.abc import Iterable, Mapping

from db_dedup.app.database import Database
from db_dedup.config import WatchedTable
from db_dedup.dialects.grants import ACCOUNT_ROLES, TABLE_OWNER, Grants
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.records.names import view_name
from db_dedup.store.inspection import inspect_table, refuse_our_names
from db_dedup.translation import Phrase


def grant_statements(
    database: Database,
    watched: WatchedTable,
    accounts: Mapping[str, str] | None = None,
    parts: Iterable[str] = ACCOUNT_ROLES,
) -> str:
    """Write the GRANT statements of the accounts that work on a table, as a script for the administrator.

    Args:
        database: the database of the table; our tables need not exist yet.
        watched: the table's settings.
        accounts: part -> account; on PostgreSQL also "table_owner" -> the role that owns the table, which is
            looked up if it is left out.
        parts: the parts (of `ACCOUNT_ROLES`) to write statements for.

    Raises:
        ConfigError: the database has no accounts, or our tables are in another one.
        UnknownNameError: there is no such table, or no such part.
    """
    accounts, parts = dict(accounts or {}), list(parts)
    for part in (*parts, *(name for name in accounts if name != TABLE_OWNER)):
        if part not in ACCOUNT_ROLES:
            raise UnknownNameError(Phrase("part of the grants"), part, ACCOUNT_ROLES)
    if database.is_apart:
        raise ConfigError(
            "our tables are in another database, where the account of db-dedup owns all that it makes; "
            "on {table!r} it needs SELECT; to scan a replica of an attached table it also needs SELECT on "
            "{ours!r} there",
            table=watched.table_name,
            ours=database.tables.watched_table.fullname,
        )
    limits = database.dialect.capabilities
    view = view_name(
        database.namespace,
        watched.name,
        limits.max_name_length,
        limit_counts_bytes=limits.name_limit_counts_bytes,
    )
    with database.translate_driver_errors(), database.engine.connect() as connection:
        refuse_our_names(
            connection, database.dialect, database.namespace, watched.table_name, watched.schema_name
        )
        inspect_table(connection, watched.table_name, watched.schema_name)
        wanted = Grants(database.namespace, watched.table_name, watched.schema_name, view, accounts, parts)
        return database.dialect.grants(connection, wanted)
