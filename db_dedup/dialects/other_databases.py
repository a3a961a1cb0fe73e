"""Databases that are not supported, and what to try instead."""

from typing import Final

from db_dedup.translation import Phrase

_COMPATIBLE: Final = (
    "{name} is not supported by name. It speaks PostgreSQL's protocol: try "
    "postgresql://user:password@host/name on a copy first; this has not been tested"
)
_ANOTHER: Final = (
    "{name} is not supported: export the table to a CSV file and run `db-dedup file FILE.csv`, "
    "or copy it into SQLite, PostgreSQL, MariaDB or MySQL"
)
_SPEAK_POSTGRESQL: Final = {
    "kingbase": "KingbaseES",
    "kingbase8": "KingbaseES",
    "kingbasees": "KingbaseES",
    "opengauss": "openGauss",
    "gaussdb": "GaussDB",
    "highgo": "HighGo",
}
_OTHERS: Final = {
    "dm": "DM",
    "dameng": "DM",
    "oracle": "Oracle",
    "mssql": "SQL Server",
    "oceanbase": "OceanBase",
    "db2": "Db2",
    "duckdb": "DuckDB",
    "clickhouse": "ClickHouse",
    "hive": "Hive",
    "access": "Access",
    "cockroachdb": "CockroachDB",
    "redshift": "Redshift",
}

OTHER_DATABASES: Final = {
    **{scheme: Phrase(_COMPATIBLE, name=name) for scheme, name in _SPEAK_POSTGRESQL.items()},
    **{scheme: Phrase(_ANOTHER, name=name) for scheme, name in _OTHERS.items()},
}
"""The first part of a URL, in lower case -> the whole error message."""
