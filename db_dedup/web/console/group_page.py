"""The pages of a group and of two rows, where people say whether rows are duplicates."""

from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse, RedirectResponse, Response

from db_dedup.records import LabelOutcome, PairLabel
from db_dedup.records.group_history import GroupHistory
from db_dedup.web import cursors
from db_dedup.web.console.cards import Card, CardReader, GroupShown, judged_texts
from db_dedup.web.console.page_security import PREFIX
from db_dedup.web.console.site import PageRoute, Reader, is_local_page, link
from db_dedup.web.context import Cursor, RowKeyQuery
from db_dedup.web.problems import RefusedError
from db_dedup.web.tables import ServedTable

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PART_HEADER: Final = "x-part"
_SAID: Final = {"confirm": True, "reject": False}


class Page(NamedTuple):
    """A group with its history; no group, if the id is no longer that of one."""

    found: GroupShown | None
    history: GroupHistory | None


@router.get(f"{PREFIX}/tables/{{table}}/group")
async def group(
    visitor: Reader,
    table: str,
    row_key: RowKeyQuery,
    cursor: Cursor = None,
    full: Annotated[str, Query(max_length=5)] = "",
    said: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Show a group."""
    after = cursors.member_place(cursor)

    def read() -> Page:
        served = visitor.context.tables.find(table)
        found = CardReader(served, bool(full), visitor.words).group(row_key, after)
        return Page(found, _read_history(served, row_key, found) if cursor is None else None)

    found, history = await visitor.context.threads.run(read)
    if found is None:
        if history is None or not history.is_known:
            raise RefusedError("unknown-row", visitor.words("error.no_group", key=row_key))
        return visitor.page("group_gone.html", 404, table=table, history=history)
    return visitor.page(
        "group.html",
        table=table,
        row_key=row_key,
        found=found,
        history=history,
        cursor=cursor,
        full=full,
        said=visitor.words.name("said", said) if said else "",
    )


@router.get(f"{PREFIX}/tables/{{table}}/pair")
async def pair(
    visitor: Reader, table: str, key_a: RowKeyQuery, key_b: RowKeyQuery, full: str = ""
) -> Response:
    """Show two rows, whether they are a pair or not."""

    def read() -> Card:
        return CardReader(visitor.context.tables.find(table), bool(full), visitor.words).card(key_a, key_b)

    card = await visitor.context.threads.run(read)
    return visitor.page("pair.html", table=table, card=card, full=full)


@router.post(f"{PREFIX}/tables/{{table}}/label")
async def label(visitor: Reader, table: str) -> Response:
    """Confirm or reject a pair, or withdraw what was said of it."""
    fields = await visitor.form()
    if not visitor.may_label:
        raise RefusedError("scope-missing", visitor.words("error.read_only"))
    action, key_a, key_b = (fields.get(name, "") for name in ("action", "key_a", "key_b"))
    if action not in (*_SAID, "undo"):
        raise RefusedError("invalid", visitor.words("error.form"))
    judged = judged_texts(fields.get("proof", ""), key_a, key_b)
    back, full, same = (fields.get(name, "") for name in ("back", "full", "same"))
    is_part = bool(visitor.request.headers.get(_PART_HEADER))

    def give() -> tuple[LabelOutcome, Card | None]:
        served = visitor.context.tables.find(table)
        labels = served.dedup.labels()
        if action == "undo":
            outcome = labels.withdraw(key_a, key_b, judged)
        else:
            outcome = labels.give([PairLabel(key_a, key_b, _SAID[action])], judged)
        if not is_part:
            return outcome, None
        return outcome, CardReader(served, bool(full), visitor.words).card(key_a, key_b, same)

    outcome, card = await visitor.context.threads.run(give)
    done = _done(action, outcome)
    if card is not None:
        message = visitor.words.name("said", done)
        part = visitor.part("card.html", table=table, card=card, message=message, back=back, full=full)
        return HTMLResponse(part)
    address = back if is_local_page(back) else link("tables", table, "group", row_key=key_a)
    return RedirectResponse(f"{address}{'&' if '?' in address else '?'}said={done}", 303)


def _done(action: str, outcome: LabelOutcome) -> str:
    """Return the name of the sentence about what was done."""
    if outcome.faults or outcome.exact_duplicates:
        return "undone_nothing" if action == "undo" else "not_kept"
    if not outcome.changes_answer:
        return f"{action}_kept"
    return f"{action}_queued" if outcome.is_queued else f"{action}_next_scan"


def _read_history(served: ServedTable, row_key: str, found: GroupShown | None) -> GroupHistory:
    """Return the history of an id, or of the group that is shown, if the key was never an id."""
    history = served.dedup.group_history(row_key)
    if history.changes or found is None or found.group.group_id == row_key:
        return history
    return served.dedup.group_history(found.group.group_id)
