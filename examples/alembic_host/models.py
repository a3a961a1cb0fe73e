"""What the petition office keeps: its models, and how it reaches its database."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import DateTime, Engine, ForeignKey, String, Text, create_engine, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """All tables of the office."""


class Petition(Base):
    """A petition as it was received; `earlier` is one that it seems to repeat, for an officer to judge."""

    __tablename__ = "petitions"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    title: Mapped[str] = mapped_column(String(200))
    content: Mapped[str] = mapped_column(Text)
    region: Mapped[str | None] = mapped_column(String(50))
    channel: Mapped[str | None] = mapped_column(String(50))
    petitioner: Mapped[str | None] = mapped_column(String(50))
    phone: Mapped[str | None] = mapped_column(String(50))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    earlier_id: Mapped[UUID | None] = mapped_column(ForeignKey("petitions.id"))
    earlier: Mapped["Petition | None"] = relationship(remote_side="Petition.id")


def open_database(url: str) -> Engine:
    """The office's own engine, with the driver that `db-dedup[postgresql]` brings."""
    return create_engine(make_url(url).set(drivername="postgresql+psycopg"))
