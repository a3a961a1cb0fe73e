"""Labels: what people say of pairs of rows."""

from datetime import datetime

from fastapi import APIRouter

from db_dedup.records import GivenLabel, PairLabel
from db_dedup.web import cursors
from db_dedup.web.context import (
    NEEDS_LABEL,
    NEEDS_READ,
    WRITES,
    Ctx,
    Cursor,
    Limit,
    RowKeyQuery,
    TableName,
)
from db_dedup.web.models import LabelAnswer, LabelOutcomeAnswer, LabelPage, LabelsRequest

router = APIRouter(prefix="/v1")


@router.get("/tables/{table}/labels", dependencies=[NEEDS_READ])
async def list_labels(context: Ctx, table: TableName, cursor: Cursor = None, limit: Limit = 100) -> LabelPage:
    """List the labels that apply, the oldest first. A label ends when either text changes."""
    after = cursors.label_place(cursor)

    def read() -> LabelPage:
        stored = sorted(context.tables.find(table).dedup.labels().stored(), key=_place)
        left = [label for label in stored if after is None or _place(label) > after]
        shown, next_cursor = cursors.cut_page(
            left, limit, lambda label: (label.decided_at.isoformat(), label.key_a, label.key_b)
        )
        return LabelPage(
            labels=[LabelAnswer.model_validate(label) for label in shown], next_cursor=next_cursor
        )

    return await context.threads.run(read)


@router.post("/tables/{table}/labels", dependencies=[WRITES, NEEDS_LABEL])
async def add_labels(context: Ctx, table: TableName, body: LabelsRequest) -> LabelOutcomeAnswer:
    """Store labels of pairs of rows as they are now; each replaces an earlier label of the same texts."""
    given = [PairLabel(label.key_a, label.key_b, label.is_duplicate) for label in body.labels]

    def give() -> LabelOutcomeAnswer:
        return LabelOutcomeAnswer.model_validate(context.tables.find(table).dedup.labels().give(given))

    return await context.threads.run(give)


@router.delete("/tables/{table}/labels", dependencies=[WRITES, NEEDS_LABEL])
async def withdraw_label(
    context: Ctx, table: TableName, key_a: RowKeyQuery, key_b: RowKeyQuery
) -> LabelOutcomeAnswer:
    """Withdraw the label of two rows as they are now."""

    def withdraw() -> LabelOutcomeAnswer:
        outcome = context.tables.find(table).dedup.labels().withdraw(key_a, key_b)
        return LabelOutcomeAnswer.model_validate(outcome)

    return await context.threads.run(withdraw)


def _place(label: GivenLabel) -> tuple[datetime, str, str]:
    return label.decided_at, label.key_a, label.key_b
