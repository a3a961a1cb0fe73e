"""Reservations: check a record and keep others like it out until its row is stored."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from db_dedup.app.tokens import READ
from db_dedup.errors import ReservationExpiredError
from db_dedup.records import CheckResult, Record, Reservation
from db_dedup.web.checks import answer_of
from db_dedup.web.context import NEEDS_CHECK, WRITES, Ctx, ReservationName, TableName, require_scope
from db_dedup.web.models import ConfirmRequest, MatchAnswer, ReservationAnswer, ReserveRequest
from db_dedup.web.problems import problem
from db_dedup.web.tables import ServedTable

router = APIRouter(prefix="/v1/tables/{table}", dependencies=[WRITES, NEEDS_CHECK])

_DUPLICATE = "The record is a duplicate of a stored row, or of a record that another client has reserved."


@router.post("/reservations", status_code=201, response_model=ReservationAnswer)
async def reserve(context: Ctx, request: Request, table: TableName, body: ReserveRequest) -> Response:
    """Check a record and reserve it if it is new: until then no other client can reserve one like it.

    Store the row, then confirm. If the record is a duplicate, the answer has the status 409 and the matches.
    The guarantee ends when the reservation expires.
    """
    if body.differences:
        require_scope(request, READ)

    def find() -> Response:
        served = context.tables.find(table)
        found = served.dedup.reserve(body.record, body.seconds, body.row_key)
        if isinstance(found, CheckResult):
            matches = answer_of(served, body, found).model_dump(mode="json")["matches"]
            return problem("duplicate", _DUPLICATE, matches=matches)
        answer = ReservationAnswer(reservation=found.name, expires_at=found.expires_at)
        return JSONResponse(answer.model_dump(mode="json"), 201)

    return await context.threads.run(find)


@router.post(
    "/reservations/{reservation}/confirmation", status_code=204, response_class=Response, response_model=None
)
async def confirm(
    context: Ctx, table: TableName, reservation: ReservationName, body: ConfirmRequest
) -> Response:
    """Confirm that the row is committed; the reservation ends.

    409 if it had expired: another row like it may have been stored. If the request has the record, it is
    checked again, and the answer has the matches.
    """

    def end() -> Response:
        served = context.tables.find(table)
        try:
            served.dedup.confirm(reservation, body.row_key)
        except ReservationExpiredError as error:
            if body.record is None:
                raise
            return problem("expired", str(error), matches=_check_again(served, body.record, body.row_key))
        return Response(status_code=204)

    return await context.threads.run(end)


@router.delete("/reservations/{reservation}", status_code=204)
async def release(context: Ctx, table: TableName, reservation: ReservationName) -> None:
    """Release a reservation whose row will not be stored."""
    await context.threads.run(lambda: context.tables.find(table).dedup.release(reservation))


def _check_again(served: ServedTable, record: Record, row_key: str | None) -> list[Any]:
    """Return what a stored record duplicates, apart from its own row, among rows and reservations."""
    found = served.dedup.reserve(record)
    if isinstance(found, Reservation):  # its own row is not committed
        served.dedup.release(found.name)
        return []
    others = [match for match in found.matches if match.is_reserved or match.row_key != row_key]
    return [MatchAnswer(**vars(match)).model_dump(mode="json") for match in others]
