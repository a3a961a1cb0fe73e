"""Made-up petitions for an empty office, some of them linked and answered."""

from datetime import timedelta

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from db_dedup.sample import generate_petitions

from .models import Petition

PETITIONS = 400
COLUMNS = ("title", "content", "petitioner", "phone", "region")
ANSWER = (
    "您好：您反映的问题已转交{place}主管部门核实。经现场查看，情况基本属实，"
    "已责成责任单位限期整改。感谢您的监督。"
)


def fill(engine: Engine) -> int:
    """Store the sample if the table is empty; return the number of petitions that were stored."""
    with Session(engine) as session, session.begin():
        if session.scalar(select(Petition.id).limit(1)) is not None:
            return 0
        sample = generate_petitions(PETITIONS, seed=2, duplicate_share=0.35)
        stored = {}
        for given in sample.petitions:
            values = {name: getattr(given, name) for name in COLUMNS}
            stored[given.id] = Petition(received_at=given.created_at, **values)
        session.add_all(stored.values())
        session.flush()  # in this order: the numbers are those of the receipt
        for pair in sample.pairs:
            if pair.kind == "followup":
                stored[pair.id_b].follows_id = stored[pair.id_a].id
        answered = [petition for petition in stored.values() if petition.id % 4]
        for petition in answered[: PETITIONS // 2]:
            petition.answer = ANSWER.format(place=petition.region or "属地")
            petition.answered_at = petition.received_at + timedelta(days=15)
        return len(stored)
