"""The pages of tables and of their groups."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from db_dedup.app.review_pages import Place
from db_dedup.records.kinds import KINDS
from db_dedup.records.reviews import GROUP_ORDERS, GroupFilter, GroupOrder
from db_dedup.store.review_pages import GroupContents, ReviewedGroup
from db_dedup.web import cursors
from db_dedup.web.console.marking import beginning
from db_dedup.web.console.page_security import PREFIX
from db_dedup.web.console.site import PageRoute, Reader, Visitor, link
from db_dedup.web.console.words import Words
from db_dedup.web.context import Cursor
from db_dedup.web.problems import RefusedError

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_GROUPS_A_PAGE: Final = 20
_SHOWN_CHARACTERS: Final = 90
_YES_NO: Final = {"yes": True, "no": False}

Parameter = Annotated[str, Query(max_length=700)]


class GroupLine(NamedTuple):
    """A group in the list."""

    group_id: str
    size: int
    is_loose: bool
    is_abridged: bool
    kinds: list[str]
    other_place: bool
    received: str
    texts: list[str]


@router.get(PREFIX)
async def tables(visitor: Reader) -> Response:
    """List the tables."""
    context = visitor.context

    def read() -> list[dict[str, Any]]:
        return [
            {"name": name, "totals": context.tables.find(name).review.totals()}
            for name in context.tables.names()
        ]

    return visitor.page("tables.html", tables=await context.threads.run(read))


@router.get(f"{PREFIX}/tables/{{table}}")
async def groups(
    visitor: Reader,
    table: str,
    order: Parameter = "size",
    kind: Parameter = "",
    other_place: Parameter = "",
    loose: Parameter = "",
    since: Parameter = "",
    until: Parameter = "",
    column: Parameter = "",
    value: Parameter = "",
    key: Parameter = "",
    cursor: Cursor = None,
) -> Response:
    """List some groups of a table."""
    if key.strip():
        return RedirectResponse(link("tables", table, "group", row_key=key.strip()), 303)
    given = {
        "order": order,
        "kind": kind,
        "other_place": other_place,
        "loose": loose,
        "since": since,
        "until": until,
        "column": column,
        "value": value,
    }
    after = cursors.review_place(cursor)
    found = await visitor.context.threads.run(lambda: _read(visitor, table, given, after))
    following = found["page"].place
    return visitor.page(
        "groups.html",
        table=table,
        given=given,
        is_filtered=any(given[name] for name in given if name not in ("order", "column")),
        is_first=cursor is None,
        next_link=following and link("tables", table, **given, cursor=cursors.cursor_of(tuple(following))),
        lists=_lists(visitor.words),
        shown={name: value for name, value in given.items() if value and name not in ("order", "column")},
        orders=GROUP_ORDERS,
        kinds=KINDS,
        **found,
    )


def _read(visitor: Visitor, table: str, given: Mapping[str, str], after: Place | None) -> dict[str, Any]:
    """Return what can be asked of a table, a page of its groups, and a line for each of these groups."""
    review = visitor.context.tables.find(table).review
    columns, has_days = review.columns(), review.has_days()
    if not has_days and (given["since"].strip() or given["until"].strip()):
        raise RefusedError("invalid", visitor.words("error.no_days"))
    wanted = _wanted(visitor, given, columns)
    page = review.groups(_order(given["order"]), wanted, after, _GROUPS_A_PAGE)
    texts = review.texts([group.group_id for group, _ in page.groups])
    lines = [_line(group, contents, texts.get(group.group_id, ())) for group, contents in page.groups]
    return {"columns": columns, "has_days": has_days, "lines": lines, "page": page}


def _line(group: ReviewedGroup, contents: GroupContents, texts: Iterable[str]) -> GroupLine:
    return GroupLine(
        group.group_id,
        group.size,
        group.is_loose,
        group.is_abridged,
        [kind for kind in KINDS if kind in contents.kinds],
        contents.other_place,
        _day_of(group.received),
        [beginning(text, _SHOWN_CHARACTERS) for text in texts if text],
    )


def _lists(words: Words) -> list[tuple[str, dict[str, str]]]:
    """Return (name, filter) of the lists that have a link of their own."""
    found: list[tuple[str, dict[str, str]]] = [
        (words("groups.all"), {}),
        (words("groups.is_loose"), {"loose": "yes"}),
        (words("groups.is_other_place"), {"other_place": "yes"}),
    ]
    return found + [(words(f"kind.{kind}"), {"kind": kind}) for kind in KINDS]


def _day_of(order_value: str | None) -> str:
    """Return the day of an order value that is a moment; "" if it is none."""
    try:
        return date.fromisoformat((order_value or "")[:10]).isoformat()
    except ValueError:
        return ""


def _order(given: str) -> GroupOrder:
    return next((order for order in GROUP_ORDERS if order == given), "size")


def _wanted(visitor: Visitor, given: Mapping[str, str], columns: tuple[str, ...]) -> GroupFilter:
    """Return the filter of a form; what it does not know counts as not given."""
    until = _day(visitor, given["until"])
    is_value = given["value"].strip() and given["column"] in columns
    return GroupFilter(
        kind=next((kind for kind in KINDS if kind == given["kind"]), None),
        other_place=_YES_NO.get(given["other_place"]),
        is_loose=_YES_NO.get(given["loose"]),
        since=None if (since := _day(visitor, given["since"])) is None else since.isoformat(),
        until=None if until is None else (until + timedelta(days=1)).isoformat(),
        column=given["column"] if is_value else None,
        value=given["value"].strip() if is_value else None,
    )


def _day(visitor: Visitor, text: str) -> date | None:
    if not text.strip():
        return None
    try:
        found = date.fromisoformat(text.strip())
    except ValueError:
        found = None
    if found is None or found.year > 9000:
        raise RefusedError("invalid", visitor.words("error.date"))
    return found
