"""A petition may name an earlier one that it seems to repeat."""

import sqlalchemy as sa
from alembic import op

from db_dedup import view_aside

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("petitions", sa.Column("earlier_id", sa.Uuid(), sa.ForeignKey("petitions.id")))


def downgrade() -> None:
    with view_aside(op.get_bind(), "petitions"):  # the view of db_dedup shows it
        op.drop_column("petitions", "earlier_id")
