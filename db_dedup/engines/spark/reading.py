"""The rows of the user's table as a frame of Spark: read by JDBC, in parts, as texts."""

from typing import Any, Final

from sqlalchemy import Engine

from db_dedup.dialects.jdbc import JdbcAccess
from db_dedup.engines.spark.session import Session
from db_dedup.errors import ConfigError
from db_dedup.store.source import Source
from db_dedup.store.text_query import TextQuery, text_query

_ROWS_A_FETCH: Final = "1000"


def read_texts(session: Session, access: JdbcAccess, source: Source, engine: Engine) -> tuple[TextQuery, Any]:
    """Return (the query, its rows as a frame of Spark).

    Each part of the query is in a partition of its own. A query that cannot be split is read by one task,
    which sends the rows to as many others.

    Args:
        session: an open one.
        access: how the executors read the database.
        source: the table.
        engine: connects to it from here.

    Raises:
        ConfigError: the rows cannot be read from other machines, or Spark has no driver for the database.
    """
    driver = find_driver(session, access)
    query = text_query(source, engine, session.partitions)
    properties = {
        "driver": driver,
        "fetchsize": _ROWS_A_FETCH,
        "sessionInitStatement": access.first_statement,
        **({"user": access.user} if access.user else {}),
        **({"password": access.password} if access.password else {}),
    }
    parts = {"predicates": list(query.parts)} if query.parts else {}
    table = f"({query.sql}) dedup_texts"
    frame = session.spark.read.jdbc(access.url, table, properties=properties, **parts)
    texts = frame.select(*query.names)
    return query, texts if query.parts else texts.repartition(session.partitions)


def find_driver(session: Session, access: JdbcAccess) -> str:
    """Return the first of the drivers that the driver of Spark has.

    Raises:
        ConfigError: it has none.
    """
    found = next((name for name in access.drivers if session.has_class(name)), None)
    if found is None:
        raise ConfigError(
            "Spark has no JDBC driver for this database ({drivers}): name its jar with --jar or as jars in "
            "[engine]; on Debian the package {package} has one, in /usr/share/java",
            drivers=" or ".join(access.drivers),
            package=access.jar,
        )
    return found
