"""Run the office's migrations; `include_name` keeps db_dedup's tables out of `alembic check`."""

from alembic import context

from db_dedup import Database, include_name
from office.models import Base

engine = context.config.attributes["engine"]

with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_schemas=engine.dialect.name == "postgresql",
        include_name=include_name(Database(engine).namespace),
    )
    with context.begin_transaction():
        context.run_migrations()
