"""Which names in our schema, or with our prefix, are ours."""

from collections.abc import Callable

from db_dedup.records.names import Namespace, view_name
from db_dedup.schema.schema_ddl import version_table
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import FIXED_VIEWS


def own_names(namespace: Namespace) -> set[str]:
    """Return the names of our tables and fixed views, without the version table."""
    tables = our_tables(namespace).metadata.tables.values()
    return {*(str(table.name) for table in tables), *map(namespace.name, FIXED_VIEWS)}


def own_name_test(namespace: Namespace) -> Callable[[str], bool]:
    """Return a function that tells whether a table or view in our schema is ours, by its name.

    The schema may be one that the user's tables are in, too.
    """
    ours = {*own_names(namespace), str(version_table(namespace).name)}
    own_views = view_name(namespace, "", None, limit_counts_bytes=False)
    return lambda name: name in ours or name.startswith(own_views)
