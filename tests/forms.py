"""Made-up letters in a form: the texts have nothing in common but the form around them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Column, Integer, MetaData, Table, Text, insert
from sqlalchemy.engine import Engine

from db_dedup import Deduplicator
from db_dedup import Text as TextColumn
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.records.frames import FrameList
from db_dedup.store.frames import serving_frames
from db_dedup.store.watched_tables import StoredTable, find_table

FORM: Final = (
    "【工单来源】市民热线【诉求内容】{text}【办理要求】请承办单位收到本单后及时联系市民核实情况，"
    "并在规定的时限以内把处理结果反馈给热线中心，逾期未办理的将予以通报"
)
OTHER_FORM: Final = (
    "尊敬的领导您好，我想向您反映以下的一件事情，希望得到重视。{text}以上就是我反映的全部内容，"
    "恳请有关部门尽快派人到现场查看解决，给我们一个满意的答复，谢谢"
)
_CHARACTERS: Final = [c for c in map(chr, range(0x4E00, 0x4E00 + 3000)) if normalise_batch([c]) == [c]]

letters = Table("letters", MetaData(), Column("id", Integer, primary_key=True), Column("body", Text))


def texts(count: int, seed: int = 1) -> list[str]:
    """Return texts of 30 to 90 characters that are all unlike."""
    draw = random.Random(seed)
    return ["".join(draw.choices(_CHARACTERS, k=draw.randint(30, 90))) for _ in range(count)]


def in_form(bodies: Sequence[str], form: str = FORM) -> list[str]:
    """Return the same texts in a form."""
    return [form.format(text=text) for text in bodies]


def edited(text: str) -> str:
    """Return the text without three of its characters."""
    return text[:10] + text[13:]


def write(engine: Engine, bodies: Sequence[str], first: int = 1) -> None:
    """Write rows; the table is made if it is not there."""
    letters.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(letters), [{"id": i, "body": text} for i, text in enumerate(bodies, first)])


def watch(engine: Engine, **options: Any) -> Deduplicator:
    """Our tables made, nothing scanned yet."""
    dedup = Deduplicator(engine, "letters", {"body": TextColumn()}, **options)
    dedup.upgrade()
    return dedup


def stored(dedup: Deduplicator) -> StoredTable:
    """What is stored of the table."""
    with dedup.database.engine.connect() as connection:
        found = find_table(connection, dedup.database.tables, dedup.name)
    assert found is not None
    return found


def stored_frames(dedup: Deduplicator) -> FrameList:
    """The list of the recipe that serves."""
    with dedup.database.engine.connect() as connection:
        return serving_frames(connection, dedup.database.tables, stored(dedup))
