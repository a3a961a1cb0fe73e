"""Our schema in PostgreSQL: made if it is not there, dropped if we made it."""

from pathlib import Path
from typing import Final

from sqlalchemy import String
from sqlalchemy.sql.compiler import DDLCompiler

_MARK: Final = "Made by db_dedup"
_SQL: Final = Path(__file__).with_name("sql")


def create_schema(name: str, compiler: DDLCompiler) -> str:
    """Return the statement that makes a schema unless it is there, and marks it as ours by a comment."""
    return _statement("create_schema", name, compiler)


def drop_schema(name: str, compiler: DDLCompiler) -> str:
    """Return the statement that drops a schema if we made it and nothing is left in it."""
    return _statement("drop_schema", name, compiler)


def _statement(job: str, name: str, compiler: DDLCompiler) -> str:
    template = (_SQL / f"{job}.sql").read_text(encoding="utf-8").strip()
    literal = compiler.sql_compiler.render_literal_value
    return template.format(
        name=compiler.preparer.quote_schema(name),
        name_text=literal(name, String()),
        mark=literal(_MARK, String()),
    )
