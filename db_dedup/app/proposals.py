"""Settings proposed for the tables of a database, and the tables that cannot be compared, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from db_dedup.app.database import Database
from db_dedup.errors import DedupError
from db_dedup.proposal import TableProposal
from db_dedup.store.inspection import inspect_table, list_relations, refuse_our_names
from db_dedup.store.suggestion import propose
from db_dedup.translation import Phrase


@dataclass(frozen=True)
class Proposals:
    """The proposed settings for the tables of a database.

    Attributes:
        tables: the proposed settings, sorted by table name.
        left_out: (table or view, why it has no proposal).
    """

    tables: tuple[TableProposal, ...]
    left_out: tuple[tuple[str, str], ...]


def propose_settings(database: Database, names: Sequence[str] = ()) -> Proposals:
    """Look at the tables of a database and propose their settings; nothing is written.

    Args:
        database: the user's database.
        names: the tables and views; if empty, every table. A fault of a named table is an error. Without
            names a table with a fault is left out.

    Raises:
        UnknownNameError: there is no table of one of the names.
        ConfigError: a named table has no columns to identify its rows by, or none to compare them by, or is
            one of ours.
    """
    if names:
        return Proposals(tuple(_propose(database, name) for name in dict.fromkeys(names)), ())
    with database.translate_driver_errors(), database.source_engine.connect() as connection:
        relations = list_relations(connection, database.source_dialect, database.namespace)
    tables: list[TableProposal] = []
    left_out = [(name, Phrase("a view: name its key, key = [...], to watch it")) for name in relations.views]
    for name in relations.tables:
        try:
            tables.append(_propose(database, name))
        except DedupError as error:
            if error.is_transient:
                raise
            left_out.append((name, Phrase("{error}", error=error)))
    return Proposals(tuple(tables), tuple(sorted(left_out)))


def _propose(database: Database, name: str) -> TableProposal:
    """Propose the settings of one table.

    Each table has a connection of its own, since PostgreSQL ends a transaction at the first refused
    statement.
    """
    dialect = database.source_dialect
    with database.translate_driver_errors(), database.source_engine.connect() as connection:
        refuse_our_names(connection, dialect, database.namespace, name, None)
        return propose(connection, dialect, inspect_table(connection, name))
