"""The office's own Alembic: it looks at every schema, and leaves db_dedup's tables alone."""

import os

from alembic import context
from models import Base, open_database

from db_dedup import Database, include_name

engine = context.config.attributes.get("engine") or open_database(os.environ["DB_DEDUP_URL"])

with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_schemas=True,
        include_name=include_name(Database(engine).namespace),
    )
    with context.begin_transaction():
        context.run_migrations()
