"""Lists and counts, from the SQL views of db_dedup.

The labels of a petition follow from the views by these rules:

- follow-up: the clerk linked it to an earlier petition, and its text is no copy of an earlier one;
- repeat: the same person has an earlier petition in the group, and it is no follow-up;
- joint letter: at least three persons have a petition in the group.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    DateTime,
    Integer,
    Select,
    String,
    and_,
    case,
    cast,
    column,
    false,
    func,
    select,
    table,
    true,
)
from sqlalchemy.orm import Session, defer
from sqlalchemy.types import TypeEngine

from db_dedup import Namespace

from .models import Petition

JOINT_PERSONS = 3
PAGE = 20
FILTERS = ("all", "grouped", "repeat", "joint", "follow_up", "unanswered")


@dataclass(frozen=True)
class Listed:
    """A petition in a list, with its place in the groups."""

    petition: Petition
    group_id: str | None
    is_first: bool | None
    is_repeat: bool | None
    is_follow_up: bool | None
    is_joint: bool | None

    @property
    def labels(self) -> list[str]:
        """The words of its labels."""
        found = {
            "label.first": bool(self.is_first),
            "label.repeat": self.is_repeat,
            "label.joint": self.is_joint,
            "label.follow_up": self.is_follow_up,
        }
        return [label for label, holds in found.items() if holds]


class Lists:
    """Queries over the table of petitions and the views."""

    def __init__(self, namespace: Namespace) -> None:
        def view(name: str, *texts: str, **others: type[TypeEngine[Any]]) -> Any:
            columns = [column(each, String) for each in texts]
            columns += [column(each, kind) for each, kind in others.items()]
            return table(namespace.name(name), *columns, schema=namespace.schema)

        self.members = view(
            "duplicate_members", "table_name", "group_id", "row_key", is_representative=Boolean
        )
        self.groups = view("duplicate_groups", "table_name", "group_id", "representative_key", size=Integer)
        self.pairs = view("duplicate_pairs", "table_name", "key_b", "kind")
        self.lag = view("queue_lag", "table_name", waiting=Integer)
        # The rows of the table itself, each with its group.
        self.grouped = view(
            "duplicates_of_petitions",
            "group_id",
            "phone",
            "petitioner",
            id=Integer,
            received_at=DateTime,
            is_representative=Boolean,
        )
        # As Petition.person.
        self._person = func.coalesce(self.grouped.c.phone, self.grouped.c.petitioner)
        self._member = and_(
            self.members.c.table_name == "petitions",
            self.members.c.row_key == cast(Petition.id, String),
        )

    def page(self, session: Session, chosen: str, before: int | None) -> list[Listed]:
        """The newest petitions of a filter, those with a number below `before`; one more than a page has."""
        query = self._choose(self._filters()[chosen])
        if before is not None:
            query = query.where(Petition.id < before)
        order = (Petition.id.desc(),)
        return self._read(session, query.order_by(*order).limit(PAGE + 1), order)

    def one(self, session: Session, number: int) -> Listed | None:
        """A petition by its number."""
        found = self._read(session, self._choose(Petition.id == number), (Petition.id,))
        return found[0] if found else None

    def group(self, session: Session, group_id: str, most: int) -> list[Listed]:
        """The petitions of a group, the first received at the top."""
        rows = self.grouped.c
        # By the view of the table's own rows: the database finds them by their group.
        query = select(rows.id, rows.group_id).where(rows.group_id == group_id)
        query = query.order_by(rows.is_representative.desc(), rows.received_at, rows.id)
        order = (self.members.c.is_representative.desc(), Petition.received_at, Petition.id)
        return self._read(session, query.limit(most), order)

    def followers(self, session: Session, number: int, most: int) -> list[Listed]:
        """The petitions that clerks linked to one."""
        query = self._choose(Petition.follows_id == number).order_by(Petition.id).limit(most)
        return self._read(session, query, (Petition.id,))

    def group_size(self, session: Session, group_id: str) -> int:
        """How many petitions a group has."""
        groups = self.groups.c
        query = select(groups.size).where(groups.table_name == "petitions", groups.group_id == group_id)
        return session.scalar(query) or 0

    def waiting(self, session: Session) -> int:
        """How many changes the worker has not compared yet."""
        query = select(self.lag.c.waiting).where(self.lag.c.table_name == "petitions")
        return session.scalar(query) or 0

    def counts(self, session: Session) -> dict[str, int]:
        """Filter -> the number of its petitions."""
        sums = [func.sum(case((condition, 1), else_=0)) for condition in self._filters().values()]
        row = session.execute(self._select(*sums)).one()
        return dict(zip(FILTERS, (number or 0 for number in row), strict=True))

    def regions(self, session: Session) -> Sequence[Any]:
        """(region, petitions, those after the first of a group), the most petitions first."""
        later = self.members.c.is_representative == false()
        query = self._select(Petition.region, func.count(), func.sum(case((later, 1), else_=0)))
        query = query.group_by(Petition.region)
        return session.execute(query.order_by(func.count().desc(), Petition.region)).all()

    def largest_groups(self, session: Session, most: int) -> Sequence[Any]:
        """(size, number, title, answered or not) of the largest groups, by the first received."""
        groups, is_answered = self.groups.c, Petition.answer.is_not(None)
        query = select(groups.size, Petition.id, Petition.title, is_answered)
        query = query.where(
            groups.table_name == "petitions", groups.representative_key == cast(Petition.id, String)
        )
        return session.execute(query.order_by(groups.size.desc(), Petition.id).limit(most)).all()

    def _select(self, *columns: Any) -> Select[Any]:
        return select(*columns).select_from(Petition).outerjoin(self.members, self._member)

    def _choose(self, condition: ColumnElement[bool]) -> Select[Any]:
        return self._select(Petition.id, self.members.c.group_id).where(condition)

    def _read(self, session: Session, chosen: Select[Any], order: Sequence[Any]) -> list[Listed]:
        """Read the chosen petitions, then what their labels need, which is the whole of their groups."""
        found = session.execute(chosen).all()
        groups = {group_id for _, group_id in found if group_id is not None}
        query = self._select(
            Petition,
            self.members.c.group_id,
            self.members.c.is_representative,
            self._is_repeat(groups),
            self._is_follow_up(),
            self._is_joint(groups),
        )
        query = query.where(Petition.id.in_([number for number, _ in found])).order_by(*order)
        return [Listed(*row) for row in session.execute(query.options(defer(Petition.content)))]

    def _filters(self) -> dict[str, ColumnElement[bool]]:
        conditions = (
            Petition.id.is_not(None),
            self.members.c.group_id.is_not(None),
            self._is_repeat(),
            self._is_joint(),
            self._is_follow_up(),
            Petition.answer.is_(None),
        )
        return dict(zip(FILTERS, conditions, strict=True))

    def _is_repeat(self, groups: Collection[str] | None = None) -> ColumnElement[bool]:
        """Whether the person of a petition has an earlier one; looked up in these groups, or in all."""
        rows = self.grouped.c
        turn = func.row_number().over(
            partition_by=(rows.group_id, self._person), order_by=(rows.received_at, rows.id)
        )
        turns = select(rows.id, turn.label("turn")).where(self._person.is_not(None), self._in(groups))
        later = turns.subquery().c
        return and_(Petition.id.in_(select(later.id).where(later.turn > 1)), ~self._is_follow_up())

    def _is_joint(self, groups: Collection[str] | None = None) -> ColumnElement[bool]:
        """Whether the group of a petition has enough persons; looked up in these groups, or in all."""
        rows = self.grouped.c
        found = select(rows.group_id).where(self._in(groups)).group_by(rows.group_id)
        group_id: ColumnElement[str] = self.members.c.group_id
        return group_id.in_(found.having(func.count(self._person.distinct()) >= JOINT_PERSONS))

    def _is_follow_up(self) -> ColumnElement[bool]:
        pairs = self.pairs.c
        copies = select(1).where(
            pairs.table_name == "petitions", pairs.key_b == cast(Petition.id, String), pairs.kind == "copy"
        )
        return and_(Petition.follows_id.is_not(None), ~copies.correlate(Petition).exists())

    def _in(self, groups: Collection[str] | None) -> ColumnElement[bool]:
        group_id: ColumnElement[str] = self.grouped.c.group_id
        return true() if groups is None else group_id.in_(groups)
