"""The pages that only read: the list, the counts, a petition."""

from fastapi import APIRouter
from fastapi.responses import Response
from sqlalchemy.orm import Session

from .context import Number, Office
from .differences import differences
from .listing import FILTERS, PAGE
from .visitor import Reader, RefusedError

LARGEST_GROUPS = 10
MOST_OF_GROUP = 50

router = APIRouter()


@router.get("/")
def show_list(office: Office, visitor: Reader, show: str = "all", before: Number | None = None) -> Response:
    if show not in FILTERS:
        raise RefusedError("error.missing", 404)
    with Session(office.engine) as session:
        found = office.lists.page(session, show, before)
        counts = office.lists.counts(session)
        return visitor.page(
            "list.html", petitions=found[:PAGE], more=len(found) > PAGE, show=show, counts=counts
        )


@router.get("/counts")
def show_counts(office: Office, visitor: Reader) -> Response:
    with Session(office.engine) as session:
        regions, groups = office.lists.regions(session), office.lists.largest_groups(session, LARGEST_GROUPS)
        return visitor.page("counts.html", regions=regions, groups=groups)


@router.get("/petitions/{number}")
def show_petition(office: Office, visitor: Reader, number: Number, done: str = "") -> Response:
    with Session(office.engine) as session:
        listed = office.lists.one(session, number)
        if listed is None:
            raise RefusedError("error.missing", 404)
        petition, key = listed.petition, listed.group_id
        group = office.lists.group(session, key, MOST_OF_GROUP) if key else []
        first = group[0].petition if group and not listed.is_first else None
        return visitor.page(
            "petition.html",
            listed=listed,
            group=group,
            size=office.lists.group_size(session, key) if key else 0,
            first=first,
            parts=differences(first.content, petition.content) if first else [],
            followers=office.lists.followers(session, number, MOST_OF_GROUP),
            waiting=office.lists.waiting(session),
            done=done if done in ("filed", "answer.stored") else "",
        )
