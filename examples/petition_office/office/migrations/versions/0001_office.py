"""Petitions, with their links and answers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "petitions",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("petitioner", sa.String(50)),
        sa.Column("phone", sa.String(50)),
        sa.Column("region", sa.String(50)),
        sa.Column("received_at", sa.DateTime(), nullable=False),
        sa.Column("follows_id", sa.Integer(), sa.ForeignKey("petitions.id")),
        sa.Column("reason", sa.Text()),
        sa.Column("answer", sa.Text()),
        sa.Column("answered_at", sa.DateTime()),
    )
    op.create_index(op.f("ix_petitions_region"), "petitions", ["region"])
    op.create_index(op.f("ix_petitions_follows_id"), "petitions", ["follows_id"])


def downgrade() -> None:
    op.drop_table("petitions")
