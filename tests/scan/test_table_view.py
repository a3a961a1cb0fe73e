"""The view of a watched table's own rows finds one of them by its key."""

from sqlalchemy import column, select, table

from db_dedup.sample import Sample
from tests.dialects.tables import plan_of
from tests.scan.conftest import fill_database, watch
from tests.servers import Database


def test_a_row_of_the_table_is_found_by_the_index_of_keys(database: Database, sample: Sample) -> None:
    """Otherwise all rows that have a group are read, in PostgreSQL and MariaDB."""
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    names = dedup.database.tables.namespace
    view = table(names.name("duplicates_of_petitions"), column("id"), schema=names.schema)
    with dedup.database.engine.connect() as connection:
        key = connection.execute(select(view.c.id).order_by(view.c.id)).scalars().first()
        query = select(view.c.id).where(view.c.id == key)
        assert connection.execute(query).scalars().all() == [key]
        plan = plan_of(connection, query)
    # SQLite gives the index of a unique key a name of its own, and says the columns.
    assert "fingerprint_row_key" in plan or "(row_key=?" in plan
