"""The pages that store: file a petition, answer it."""

from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from fastapi.responses import Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from db_dedup import Match

from .context import LARGEST_NUMBER, Context, Number, Office
from .differences import differences
from .filing import Choice, Draft, file_petition
from .models import Petition, now
from .visitor import Form, Reader, RefusedError, Visitor

MOST_SIMILAR = 5
LONGEST_NUMBER = 10

router = APIRouter()


@router.get("/file")
def show_form(visitor: Reader) -> Response:
    return visitor.page("file.html", fields={}, faults={})


@router.post("/file")
def file(office: Office, visitor: Reader, fields: Form) -> Response:
    draft, choice = draft_of(fields), choice_of(fields)
    faults = draft.faults()
    if choice is None or not is_known(office, choice.follows_id):
        faults["follows"] = "fault.follows"
    if faults or choice is None or "edit" in fields:
        return visitor.page("file.html", 422 if faults else 200, fields=fields, faults=faults)
    filed = file_petition(office.engine, office.dedup, draft, choice)
    if isinstance(filed, int):
        return visitor.go(f"/petitions/{filed}?done=filed")
    return show_similar(office, visitor, fields, draft, filed)


def show_similar(
    office: Context, visitor: Visitor, fields: Mapping[str, str], draft: Draft, matches: Sequence[Match]
) -> Response:
    """Show the similar petitions, those that the clerk has not seen first.

    Nothing is stored: the draft is in the form of the page.
    """
    seen = set(fields.get("seen", "").split())
    matches = sorted(matches, key=lambda match: match.row_key in seen)
    numbers = [int(match.row_key) for match in matches if not match.is_reserved][:MOST_SIMILAR]
    with Session(office.engine) as session:
        rows = {row.id: row for row in session.scalars(select(Petition).where(Petition.id.in_(numbers)))}
        by_key = {match.row_key: match for match in matches}
        similar = [
            (
                by_key[str(row.id)],
                row,
                differences(row.title, draft.title),
                differences(row.content, draft.content),
            )
            for row in (rows[number] for number in numbers if number in rows)
        ]
        return visitor.page(
            "similar.html",
            409,
            fields=fields,
            similar=similar,
            count=len(matches),
            is_reserved=any(match.is_reserved for match in matches),
            keys=" ".join(match.row_key for match in matches),
            has_new=bool(seen) and any(match.row_key not in seen for match in matches),
            needs_reason="anyway" in fields and not fields.get("reason"),
        )


@router.post("/petitions/{number}/answer")
def answer(office: Office, visitor: Reader, number: Number, fields: Form) -> Response:
    with Session(office.engine) as session, session.begin():
        petition = session.get(Petition, number)
        if petition is None:
            raise RefusedError("error.missing", 404)
        if not petition.answer and fields.get("answer"):
            petition.answer, petition.answered_at = fields["answer"], now()
    return visitor.go(f"/petitions/{number}?done=answer.stored")


def draft_of(fields: Mapping[str, str]) -> Draft:
    """The petition of a form; a field that is empty is stored as NULL."""
    return Draft(
        title=fields.get("title", ""),
        content=fields.get("content", ""),
        petitioner=fields.get("petitioner") or None,
        phone=fields.get("phone") or None,
        region=fields.get("region") or None,
    )


def choice_of(fields: Mapping[str, str]) -> Choice | None:
    """What the clerk chose on the page of similar petitions; None if the number to link to is none."""
    follows = fields.get("link") or fields.get("follows") or None
    if follows and not (follows.isascii() and follows.isdecimal() and len(follows) <= LONGEST_NUMBER):
        return None
    reason = (fields.get("reason") or None) if "anyway" in fields else None
    return Choice(
        seen=fields.get("seen", "").split(),
        follows_id=int(follows) if follows else None,
        reason=reason,
        is_decided="link" in fields or reason is not None,
    )


def is_known(office: Context, number: int | None) -> bool:
    """Whether a petition has this number; no number is fine, too."""
    if number is None:
        return True
    with Session(office.engine) as session:
        return number <= LARGEST_NUMBER and session.get(Petition, number) is not None
