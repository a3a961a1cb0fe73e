"""An application's own models: petitions with a number from the database, letters with a key of their own."""

from __future__ import annotations

import enum
from datetime import date
from typing import Any

from sqlalchemy import Engine, Enum, ForeignKey, String, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, sessionmaker

from db_dedup import Deduplicator, Value
from db_dedup import Text as TextColumn

NOISE = "城东区某工地夜间施工，噪音很大，影响附近居民休息，多次反映没有结果，请有关部门尽快处理。"
NOISE_AGAIN = "城东区某工地夜间施工，噪音很大，影响附近居民休息，多次反映没有结果，请有关部门尽快处理！谢谢"
WATER = "小区已经连续三天停水，物业没有说明原因，老人和孩子的生活很不方便，希望尽快恢复供水。"
BUS = "五路公交车经常晚点，早高峰等车超过半小时，希望公交公司增加班次，方便群众上下班出行。"


class Base(DeclarativeBase):
    pass


class Channel(enum.Enum):
    PHONE = "phone"
    LETTER = "letter"


class Backwards(TypeDecorator[str]):
    """A text that is stored from its end to its beginning, so that a check must know what is stored."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _: Any) -> str | None:
        return None if value is None else value[::-1]


class Petition(Base):
    __tablename__ = "petitions"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(200))
    body: Mapped[str | None] = mapped_column("content", Text)
    region: Mapped[str] = mapped_column(String(20), default="城东区")
    channel: Mapped[Channel | None] = mapped_column(Enum(Channel, length=20))
    note: Mapped[str | None] = mapped_column(Text)
    received: Mapped[date | None]


class Override(Base):
    __tablename__ = "overrides"

    id: Mapped[int] = mapped_column(primary_key=True)
    petition_id: Mapped[int] = mapped_column(ForeignKey("petitions.id"))
    reason: Mapped[str] = mapped_column(Text)
    petition: Mapped[Petition] = relationship()


class Letter(Base):
    __tablename__ = "letters"

    office: Mapped[str] = mapped_column(String(20), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    content: Mapped[str] = mapped_column(Backwards)


class Region(Base):
    __tablename__ = "regions"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(20))


class Call(Base):
    """What somebody said on the telephone, in a region that may be set as an object."""

    __tablename__ = "calls"

    id: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[str] = mapped_column(Text)
    region_id: Mapped[int | None] = mapped_column(ForeignKey("regions.id"))
    region: Mapped[Region | None] = relationship()


def petition(body: str | None, title: str = "反映问题", **others: Any) -> Petition:
    return Petition(title=title, body=body, **others)


def make_office(engine: Engine) -> Deduplicator:
    """The tables, with one petition; petitions scanned and attached."""
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add(petition(NOISE))
    columns = {"title": 2, "content": TextColumn(), "region": Value(), "channel": Value()}
    return made(Deduplicator(engine, "petitions", columns))


def make_letters(engine: Engine) -> Deduplicator:
    Base.metadata.create_all(engine)
    return made(Deduplicator(engine, "letters", {"content": TextColumn()}))


def make_calls(engine: Engine) -> Deduplicator:
    """Calls, of which only those of one region are duplicates; two regions, 1 and 2."""
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add_all([Region(id=1, name="城东区"), Region(id=2, name="城西区")])
    return made(Deduplicator(engine, "calls", {"content": TextColumn()}, within=["region_id"]))


def made(dedup: Deduplicator) -> Deduplicator:
    dedup.upgrade()
    dedup.scan()
    dedup.attach()
    dedup.scan()
    return dedup


def own_sessions(engine: Engine) -> sessionmaker[Session]:
    """A factory whose sessions no other test listens to."""
    return sessionmaker(engine)
