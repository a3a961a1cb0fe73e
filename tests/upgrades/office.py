"""What the databases of former versions hold: made-up petitions, and what was done with them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Column, DateTime, Engine, Integer, MetaData, String, Table, delete, insert, update

from db_dedup.sample import generate_petitions

PETITIONS: Final = Table(
    "petitions",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("title", String(100)),
    Column("content", String(400)),
    Column("region", String(100)),
    Column("link", String(200)),
    Column("created_at", DateTime),
)
NOTICES: Final = Table(
    "notices",
    PETITIONS.metadata,
    Column("code", String(20), primary_key=True),
    Column("body", String(400)),
)

COLUMNS: Final[dict[str, Any]] = {
    "title": {"kind": "text", "weight": 2},
    "content": {"kind": "text"},
    "region": {"kind": "value"},
    "link": {"kind": "value"},
}
SETTINGS: Final[dict[str, Any]] = {"columns": COLUMNS, "order": "created_at", "threshold": 0.5}
"""The recipe that serves: the preset `balanced`, with a threshold of its own."""

OTHER_SETTINGS: Final[dict[str, Any]] = {
    **SETTINGS,
    "columns": {**COLUMNS, "title": {"kind": "text", "weight": 3}},
}
"""The recipe of the scan that was killed."""

NOTICE_SETTINGS: Final[dict[str, Any]] = {
    "columns": {"body": {"kind": "text"}},
    "preset": "strict",
    "segmenter": "words",
}
"""Attached, never scanned."""

REJECTED: Final = ("1", "2")
CONFIRMED: Final = ("3", "4")
TWO_LINKS: Final = ("5", "6")
"""Equal but for their links, which the normaliser of recipe version 1 removed."""

CHANGED: Final = 7
REMOVED: Final = 8
ADDED: Final = 90
DEAD: Final = "12"
_ROWS: Final = 14
_LONGEST: Final = 100


def fill(engine: Engine) -> None:
    """Make the two tables and their rows."""
    PETITIONS.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(PETITIONS), _petitions())
        connection.execute(
            insert(NOTICES),
            [
                {"code": code, "body": f"the office is closed on the first Monday of {month}"}
                for code, month in (("a", "May"), ("b", "June"))
            ],
        )


def write(engine: Engine) -> None:
    """The changes that wait in the queue."""
    with engine.begin() as connection:
        connection.execute(
            update(PETITIONS)
            .where(PETITIONS.c.id == CHANGED)
            .values(content=_row(ADDED)["content"], title="another matter altogether")
        )
        connection.execute(delete(PETITIONS).where(PETITIONS.c.id == REMOVED))
        connection.execute(insert(PETITIONS), [_row(ADDED)])


def write_again(engine: Engine) -> None:
    """One change of each kind."""
    with engine.begin() as connection:
        connection.execute(insert(PETITIONS), [_row(ADDED - 1)])
        connection.execute(update(PETITIONS).values(title="another title"))
        connection.execute(delete(PETITIONS).where(PETITIONS.c.id == ADDED - 1))


def _petitions() -> list[dict[str, Any]]:
    """Rows 2, 4 and 6 repeat the row before them."""
    rows = [_row(number) for number in range(1, _ROWS + 1)]
    for first, repeat in (REJECTED, CONFIRMED):
        rows[int(repeat) - 1] |= {
            "title": rows[int(first) - 1]["title"],
            "content": rows[int(first) - 1]["content"] + "请尽快处理。",
        }
    first, repeat = TWO_LINKS
    copied = {name: rows[int(first) - 1][name] for name in ("title", "content", "region")}
    rows[int(repeat) - 1] |= copied
    return rows


def _row(number: int) -> dict[str, Any]:
    petition = generate_petitions(ADDED, seed=12, duplicate_share=0.0).petitions[number - 1]
    return {
        "id": number,
        "title": petition.title[:100],
        "content": petition.content[:_LONGEST],
        "region": petition.region,
        "link": f"https://office.example/petitions/{number}",
        "created_at": petition.created_at,
    }
