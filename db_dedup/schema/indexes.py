"""The indexes of the fingerprint table that a first scan makes after its rows (decision 0057)."""

from sqlalchemy import Connection, Index, inspect

from db_dedup.schema.tables import Tables


def missing_indexes(connection: Connection, tables: Tables) -> list[Index]:
    """Return the indexes of the fingerprint table that are not there.

    They are known by their columns: MySQL gives an odd name otherwise than it was written.
    """
    table = tables.fingerprint
    found = [index["column_names"] for index in inspect(connection).get_indexes(table.name, table.schema)]
    missing = (index for index in table.indexes if [*index.columns.keys()] not in found)
    return sorted(missing, key=lambda index: str(index.name))


def make_missing_indexes(connection: Connection, tables: Tables) -> None:
    """Make them, as an upgrade does."""
    for index in missing_indexes(connection, tables):
        index.create(connection)
