"""What the office stores, and how it reaches its database."""

from datetime import datetime, timedelta, timezone

from sqlalchemy import DateTime, Engine, ForeignKey, String, Text, create_engine, func, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import DeclarativeBase, Mapped, column_property, mapped_column, relationship

OFFICE_TIME = timezone(timedelta(hours=8))
"""Times are stored as the office's clock shows them."""
TITLE_LENGTH, NAME_LENGTH, TEXT_LENGTH = 200, 50, 20_000


class Base(DeclarativeBase):
    """All tables of the office."""


class Petition(Base):
    """A petition as it was received, and what the office did with it."""

    __tablename__ = "petitions"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(TITLE_LENGTH))
    content: Mapped[str] = mapped_column(Text)
    petitioner: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    phone: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    region: Mapped[str | None] = mapped_column(String(NAME_LENGTH), index=True)
    received_at: Mapped[datetime] = mapped_column(DateTime)
    # An earlier petition to which the clerk linked this one.
    follows_id: Mapped[int | None] = mapped_column(ForeignKey("petitions.id"), index=True)
    # Why the clerk filed it as new although similar ones were shown.
    reason: Mapped[str | None] = mapped_column(Text)
    answer: Mapped[str | None] = mapped_column(Text)
    answered_at: Mapped[datetime | None] = mapped_column(DateTime)

    follows: Mapped["Petition | None"] = relationship(remote_side="Petition.id")
    # Two petitions with the same phone number are of one person; without a number, those with the same name.
    person: Mapped[str | None] = column_property(func.coalesce(phone, petitioner))


def now() -> datetime:
    """The time on the office's clock."""
    return datetime.now(OFFICE_TIME).replace(tzinfo=None, microsecond=0)


def open_database(url: str) -> Engine:
    """The office's engine: SQLite, or PostgreSQL with the driver that `db-dedup[postgresql]` installs.

    Its errors, which are logged, contain no texts of petitions.
    """
    given = make_url(url)
    if given.get_backend_name() == "sqlite":
        return create_engine(given, hide_parameters=True, connect_args={"timeout": 10})
    if given.get_backend_name() != "postgresql":
        raise ArgumentError("the petition office runs on SQLite and PostgreSQL: try postgresql://...")
    return create_engine(given.set(drivername="postgresql+psycopg"), hide_parameters=True, pool_pre_ping=True)
