"""A petition office with models and migrations of its own, and db_dedup beside them, on PostgreSQL.

    python examples/alembic_host/petition_office.py postgresql://user:password@host/an_empty_database

It makes its tables, receives some hundred sample petitions and scans them. Then two more come in: each is
checked in the transaction that stores it, and one that seems to repeat an earlier petition is linked to it.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from alembic import command
from alembic.config import Config
from models import Petition, open_database
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from db_dedup import Deduplicator, Text
from db_dedup.sample import generate_petitions

FOLDER = Path(__file__).parent
COLUMNS = ("title", "content", "region", "channel", "petitioner", "phone")


def main(url: str) -> None:
    """Set up, scan, receive."""
    engine = open_database(url)
    alembic = Config(FOLDER / "alembic.ini", attributes={"engine": engine})
    command.upgrade(alembic, "head")
    receive_sample(engine)

    dedup = Deduplicator(
        engine, "petitions", {"title": Text(), "content": Text()}, order="created_at", within="region"
    )
    dedup.upgrade()
    report = dedup.scan()
    print(f"{report.rows} petitions, {report.groups} groups with {report.grouped_rows} of them")

    with Session(engine) as session:
        first = session.scalars(select(Petition).order_by(Petition.created_at).limit(1)).one()
    again = first.content + "以上问题至今没有答复，请尽快处理。"
    print(receive(engine, dedup, title=first.title, content=again, region=first.region))
    print(receive(engine, dedup, title="建议增设图书馆", content="老年大学旁边没有可以看书的地方。"))

    command.check(alembic)  # fails if our models and the database differ, or db_dedup's tables are in the way
    engine.dispose()


def receive_sample(engine: Engine) -> None:
    """Store the sample, unless it is there from an earlier run."""
    with Session(engine) as session, session.begin():
        if session.scalar(select(Petition.id).limit(1)) is not None:
            return
        for sample in generate_petitions(500).petitions:
            values = {name: getattr(sample, name) for name in COLUMNS}
            session.add(Petition(created_at=sample.created_at.replace(tzinfo=UTC), **values))


def receive(engine: Engine, dedup: Deduplicator, **values: str | None) -> str:
    """Check a petition and store it, linked to the nearest earlier one, in one transaction of ours."""
    with Session(engine) as session, session.begin():
        petition = Petition(created_at=datetime.now(UTC), **values)
        matches = dedup.check(values, session)
        if matches:
            petition.earlier_id = UUID(matches[0].row_key)
        session.add(petition)
        session.flush()
        if petition.earlier is None:
            return f"{petition.title}: new"
        return (
            f"{petition.title}: seems to repeat the petition of {petition.earlier.created_at:%Y-%m-%d} "
            f"({matches[0].distance} bits, similarity {matches[0].similarity:.2f})"
        )


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("DB_DEDUP_URL")
    if given is None:
        sys.exit("give the URL of an empty PostgreSQL database, or set DB_DEDUP_URL")
    main(given)
