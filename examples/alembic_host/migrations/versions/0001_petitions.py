"""Petitions."""

import sqlalchemy as sa
from alembic import op

from db_dedup import view_aside

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "petitions",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("region", sa.String(50)),
        sa.Column("channel", sa.String(50)),
        sa.Column("petitioner", sa.String(50)),
        sa.Column("phone", sa.String(50)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    with view_aside(op.get_bind(), "petitions"):  # the view of db_dedup shows it
        op.drop_table("petitions")
