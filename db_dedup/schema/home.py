"""What holds our tables: the schema of our own, where there is one, and the table that names the revision."""

from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column, MetaData, String, Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from db_dedup.schema.names import Namespace

_MARK: Final = "Made by db_dedup"
_SQL: Final = Path(__file__).with_name("sql")


def version_table(namespace: Namespace) -> Table:
    """The table in which Alembic keeps our revision: never the host's."""
    return Table(
        namespace.name("alembic_version"),
        MetaData(),
        Column("version_num", String(32), primary_key=True),
        schema=namespace.schema,
    )


class CreateOurSchema(ExecutableDDLElement):
    """Make our schema unless it exists; the one made is marked as ours by a comment."""

    inherit_cache = False

    def __init__(self, schema: str) -> None:
        """Name the schema."""
        self.schema = schema


class DropOurSchema(ExecutableDDLElement):
    """Drop our schema if we made it and nothing is left in it."""

    inherit_cache = False

    def __init__(self, schema: str) -> None:
        """Name the schema."""
        self.schema = schema


@compiles(CreateOurSchema, "postgresql")
def _create_schema(element: CreateOurSchema, compiler: DDLCompiler, **_: Any) -> str:
    return _statement("create_schema", element.schema, compiler)


@compiles(DropOurSchema, "postgresql")
def _drop_schema(element: DropOurSchema, compiler: DDLCompiler, **_: Any) -> str:
    return _statement("drop_schema", element.schema, compiler)


def _statement(job: str, schema: str, compiler: DDLCompiler) -> str:
    text = (_SQL / f"{job}.sql").read_text(encoding="utf-8").strip()
    literal = compiler.sql_compiler.render_literal_value
    return text.format(
        name=compiler.preparer.quote_schema(schema),
        name_text=literal(schema, String()),
        mark=literal(_MARK, String()),
    )
