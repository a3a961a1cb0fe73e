"""Checks of records: is it a duplicate, of which rows, how alike are they, what differs?"""

from fastapi import APIRouter, Request

from db_dedup.app.tokens import READ
from db_dedup.records import CheckResult
from db_dedup.web.context import NEEDS_CHECK, Ctx, TableName, require_scope
from db_dedup.web.differences import read_differences
from db_dedup.web.models import CheckAnswer, CheckRequest, Differences, MatchAnswer
from db_dedup.web.tables import ServedTable

router = APIRouter(prefix="/v1", dependencies=[NEEDS_CHECK])


@router.post("/tables/{table}/check")
async def check(context: Ctx, request: Request, table: TableName, body: CheckRequest) -> CheckAnswer:
    """Find the stored rows that a record duplicates, the nearest first. Nothing is stored."""
    if body.differences:
        require_scope(request, READ)

    def find() -> CheckAnswer:
        served = context.tables.find(table)
        return answer_of(served, body, served.dedup.check_in_full(body.record))

    return await context.threads.run(find)


def answer_of(served: ServedTable, body: CheckRequest, result: CheckResult) -> CheckAnswer:
    """Return the answer for a result, with differences if they are asked for."""
    differences: dict[str, Differences] = {}
    if body.differences and result.matches:
        differences = read_differences(served.dedup.texts(), body.record, result.matches)
    return CheckAnswer(
        is_duplicate=bool(result.matches),
        too_little_text=result.too_little_text,
        matches=[
            MatchAnswer(**vars(match), differences=differences.get(match.row_key)) for match in result.matches
        ],
    )
