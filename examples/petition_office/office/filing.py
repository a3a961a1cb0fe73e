"""File a petition: check it and store it in one transaction, so that two clerks cannot miss each other."""

import random
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from db_dedup import DedupError, Deduplicator, Match

from .models import NAME_LENGTH, TEXT_LENGTH, TITLE_LENGTH, Petition, now

T = TypeVar("T")
ATTEMPTS = 3


@dataclass(frozen=True)
class Draft:
    """A petition that is not stored yet."""

    title: str
    content: str
    petitioner: str | None
    phone: str | None
    region: str | None

    def faults(self) -> dict[str, str]:
        """Field -> the word for what is wrong with it."""
        found = {name: "fault.empty" for name in ("title", "content") if not getattr(self, name)}
        limits = dict.fromkeys(("petitioner", "phone", "region"), NAME_LENGTH)
        limits |= {"title": TITLE_LENGTH, "content": TEXT_LENGTH}
        found |= {
            name: "fault.long" for name, most in limits.items() if len(getattr(self, name) or "") > most
        }
        return found


@dataclass(frozen=True)
class Choice:
    """What the clerk chose, and which similar petitions were on the screen then.

    Attributes:
        seen: row keys of the similar petitions that the clerk has seen.
        follows_id: an earlier petition to link to.
        reason: why it is filed as new.
        is_decided: whether the clerk chose to link it or to file it anyway.
    """

    seen: Collection[str] = ()
    follows_id: int | None = None
    reason: str | None = None
    is_decided: bool = False

    def covers(self, matches: list[Match]) -> bool:
        """Whether the petition may be stored: the clerk has seen every match, and decided."""
        return not matches or (self.is_decided and all(match.row_key in self.seen for match in matches))


def file_petition(engine: Engine, dedup: Deduplicator, draft: Draft, choice: Choice) -> int | list[Match]:
    """Store a petition and return its number; or return the similar ones that the clerk must see first.

    `block` makes the second of two clerks wait until the first has committed, and then finds that petition.
    """

    def store() -> int | list[Match]:
        with Session(engine) as session, session.begin():
            # The check comes first: it takes SQLite's lock for writing, which a reader may not wait for.
            matches = dedup.check(asdict(draft), session, block=True)
            if not choice.covers(matches):
                return matches
            petition = Petition(
                **asdict(draft), received_at=now(), follows_id=choice.follows_id, reason=choice.reason
            )
            session.add(petition)
            session.flush()
            return petition.id

    return retried(store)


def retried(work: Callable[[], T]) -> T:
    """Repeat a whole transaction that failed for a reason that passes, such as a lock."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return work()
        except DedupError as error:
            if not error.is_transient:
                raise
        time.sleep(0.2 * 2**attempt * random.uniform(0.5, 1.5))
    return work()
