"""The office's own Alembic."""
