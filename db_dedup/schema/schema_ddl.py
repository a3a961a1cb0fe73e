"""The DDL of what our tables need: our schema, on databases that have schemas, and the version table."""

from typing import Any

from sqlalchemy import Column, MetaData, String, Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from db_dedup.dialects import named_dialect
from db_dedup.records.names import Namespace


def version_table(namespace: Namespace) -> Table:
    """Return the table in which Alembic keeps our revision; a host's Alembic has its own."""
    return Table(
        namespace.name("alembic_version"),
        MetaData(),
        Column("version_num", String(32), primary_key=True),
        schema=namespace.schema,
    )


class CreateOurSchema(ExecutableDDLElement):
    """Create our schema unless it exists; a comment marks a schema that we created."""

    inherit_cache = False

    def __init__(self, schema: str) -> None:
        """Name the schema."""
        self.schema = schema


class DropOurSchema(ExecutableDDLElement):
    """Drop our schema if we created it and it is empty."""

    inherit_cache = False

    def __init__(self, schema: str) -> None:
        """Name the schema."""
        self.schema = schema


@compiles(CreateOurSchema)
def _create_schema(element: CreateOurSchema, compiler: DDLCompiler, **_: Any) -> str:
    return named_dialect(compiler.dialect.name).create_schema(element.schema, compiler)


@compiles(DropOurSchema)
def _drop_schema(element: DropOurSchema, compiler: DDLCompiler, **_: Any) -> str:
    return named_dialect(compiler.dialect.name).drop_schema(element.schema, compiler)
