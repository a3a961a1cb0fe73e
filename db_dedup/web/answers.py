"""Pages of the stored answer: tables, pairs, groups, the group of a row, why two rows are a pair."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from db_dedup.errors import UnknownNameError
from db_dedup.present.explanation_words import explained_differences, explanation_lines
from db_dedup.records.kinds import Kind
from db_dedup.translation import Phrase, in_english
from db_dedup.web import cursors
from db_dedup.web.context import NEEDS_READ, Ctx, Cursor, Limit, RowKeyQuery, TableName
from db_dedup.web.models import (
    GroupAnswer,
    GroupHistoryAnswer,
    GroupPage,
    MemberPage,
    PairAnswer,
    PairPage,
    TableNames,
)
from db_dedup.web.problems import RefusedError

router = APIRouter(prefix="/v1", dependencies=[NEEDS_READ])


@router.get("/tables")
async def list_tables(context: Ctx) -> TableNames:
    """List the watched tables."""
    return TableNames(tables=await context.threads.run(context.tables.names))


@router.get("/status")
async def status(context: Ctx) -> list[dict[str, Any]]:
    """Show the state of all watched tables, as `db-dedup status --json` prints it."""
    return await context.threads.run(lambda: _status(context, context.tables.names()))


@router.get("/tables/{table}/status")
async def table_status(context: Ctx, table: TableName) -> dict[str, Any]:
    """Show the state of one table: answer, queue, triggers, last scans."""
    return (await context.threads.run(lambda: _status(context, [table])))[0]


@router.get("/tables/{table}/pairs")
async def pairs(
    context: Ctx,
    table: TableName,
    cursor: Cursor = None,
    limit: Limit = 100,
    kind: Annotated[list[Kind] | None, Query(description="Only pairs of these kinds.")] = None,
    other_place: Annotated[
        bool | None,
        Query(description="Only pairs whose two texts name different places, or only the other pairs."),
    ] = None,
) -> PairPage:
    """List the duplicate pairs by row key; the links of exact duplicates come last."""
    after = cursors.pair_place(cursor)

    def read() -> PairPage:
        found = context.tables.find(table).pages.pairs(after, limit + 1, kind, other_place)
        shown, next_cursor = cursors.cut_page(found, limit, lambda entry: entry[0])
        return PairPage(pairs=[PairAnswer.model_validate(pair) for _, pair in shown], next_cursor=next_cursor)

    return await context.threads.run(read)


@router.get("/tables/{table}/groups")
async def groups(context: Ctx, table: TableName, cursor: Cursor = None, limit: Limit = 100) -> GroupPage:
    """List the duplicate groups, the largest first."""
    after = cursors.group_place(cursor)

    def read() -> GroupPage:
        found = context.tables.find(table).pages.groups(after, limit + 1)
        shown, next_cursor = cursors.cut_page(found, limit, lambda group: (group.size, group.group_id))
        return GroupPage(
            groups=[GroupAnswer.model_validate(group) for group in shown], next_cursor=next_cursor
        )

    return await context.threads.run(read)


@router.get("/tables/{table}/group")
async def group_of_row(
    context: Ctx, table: TableName, row_key: RowKeyQuery, cursor: Cursor = None, limit: Limit = 100
) -> MemberPage:
    """Show the group that a row is in. The id of a group is the row key of its representative.

    If the row is in no group and its key was the id of a group, the error names in `leads_to` the ids of the
    groups that have rows of it now.
    """
    after = cursors.member_place(cursor)

    def read() -> MemberPage:
        served = context.tables.find(table)
        found = served.pages.group_of(row_key, after, limit + 1)
        if found is None:
            groups = served.dedup.group_history(row_key).groups
            leads_to = [group.group_id for group in groups]
            raise RefusedError("unknown-row", "The row is in no group.", leads_to=leads_to)
        group, keys = found
        shown, next_cursor = cursors.cut_page(keys, limit, lambda key: (key,))
        return MemberPage(
            group=GroupAnswer.model_validate(group), row_keys=list(shown), next_cursor=next_cursor
        )

    return await context.threads.run(read)


@router.get("/tables/{table}/group/history")
async def group_history(
    context: Ctx,
    table: TableName,
    group_id: Annotated[str, Query(description="An id that a group has or had.", max_length=700)],
) -> GroupHistoryAnswer:
    """Show what has become of a group: where its rows are now, and what happened in between."""

    def read() -> GroupHistoryAnswer:
        found = context.tables.find(table).dedup.group_history(group_id)
        if not found.is_known and found.row_group_id is None:
            raise RefusedError("unknown-row", "No group has this id, and none had it as long as is kept.")
        return GroupHistoryAnswer.model_validate(found)

    return await context.threads.run(read)


@router.get("/tables/{table}/explanation")
async def explanation(
    context: Ctx,
    table: TableName,
    key_a: RowKeyQuery,
    key_b: RowKeyQuery,
) -> dict[str, Any]:
    """Explain why two rows are a duplicate pair, or why not, as `db-dedup explain --json` prints it.

    `sentences` has the same in English sentences.
    """

    def explain() -> dict[str, Any]:
        found = context.tables.find(table).dedup.explain(key_a, key_b)
        differences = {sort: only._asdict() for sort, only in explained_differences(found).items()}
        sentences = in_english(lambda: explanation_lines(found))
        return {**asdict(found), "differences": differences, "sentences": sentences}

    return await context.threads.run(explain)


def _status(context: Ctx, names: Sequence[str]) -> list[dict[str, Any]]:
    served = context.tables.names()
    entries = {entry.table: entry for entry in context.tables.database.status() if entry.table in served}
    for name in names:
        if name not in served:
            raise UnknownNameError(Phrase("watched table"), name, served)
    if len(names) == 1 and names[0] not in entries:
        raise RefusedError("not-ready", "The table has not been scanned yet.")
    return [asdict(entries[name]) for name in names if name in entries]
