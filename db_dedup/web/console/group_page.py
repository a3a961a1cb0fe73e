"""The page of a group: its rows side by side, why they are pairs, and what people say of them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse, RedirectResponse, Response

from db_dedup.app.review_pages import ReviewRows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.records import JudgedTexts, LabelOutcome, PairLabel
from db_dedup.records.group_history import GroupHistory
from db_dedup.web import cursors
from db_dedup.web.console.explaining import Shown, explained
from db_dedup.web.console.marking import TextPart, marked
from db_dedup.web.console.page_security import PREFIX
from db_dedup.web.console.site import PageRoute, Reader, is_local_page, link
from db_dedup.web.console.words import Words
from db_dedup.web.problems import RefusedError
from db_dedup.web.tables import ServedTable

router = APIRouter(route_class=PageRoute, include_in_schema=False)

ROWS_A_PAGE: Final = 6
"""The representative, which every page begins with, and five others."""
_PART_HEADER: Final = "x-part"
_SAID: Final = {"confirm": True, "reject": False}

Key = Annotated[str, Query(max_length=700)]


class ShownColumn(NamedTuple):
    """One column of two rows."""

    name: str
    left: list[TextPart]
    right: list[TextPart]


class Card(NamedTuple):
    """Two rows side by side.

    Attributes:
        same: the keys of other rows of this page with the same text as the second row, as they are shown.
        said: the label of the two; None if there is none.
        proof: digests of the two texts and of the recipe, so that a label is of what was shown.
    """

    key_a: str
    key_b: str
    same: str
    columns: list[ShownColumn]
    distance: int | None
    similarity: str
    shown: Shown
    said: bool | None
    proof: str


class GroupShown(NamedTuple):
    """What the page of a group shows."""

    group: Any
    cards: list[Card]
    copies: list[str]
    gone: list[str]
    next_cursor: str | None


class Page(NamedTuple):
    """A group with its history; no group, if the id is no longer that of one."""

    found: GroupShown | None
    history: GroupHistory | None


@router.get(f"{PREFIX}/tables/{{table}}/group")
async def group(
    visitor: Reader,
    table: str,
    row_key: Key,
    cursor: Annotated[str | None, Query(max_length=20_000)] = None,
    full: Annotated[str, Query(max_length=5)] = "",
    said: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Show a group."""
    after = cursors.member_place(cursor)

    def read() -> Page:
        served = visitor.context.tables.find(table)
        found = _read_group(served, row_key, after, bool(full), visitor.words)
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
async def pair(visitor: Reader, table: str, key_a: Key, key_b: Key, full: str = "") -> Response:
    """Show two rows, whether they are a pair or not."""
    card = await visitor.context.threads.run(
        lambda: _read_card(visitor.context.tables.find(table), key_a, key_b, bool(full), visitor.words)
    )
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
    judged = _judged(fields.get("proof", ""), key_a, key_b)

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
        return outcome, _read_card(served, key_a, key_b, bool(full), visitor.words, same)

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


def _read_group(
    served: ServedTable, row_key: str, after: str | None, full: bool, words: Words
) -> GroupShown | None:
    found = served.pages.group_of(row_key, after, ROWS_A_PAGE + 1 - (after is not None))
    if found is None:
        return None
    summary, keys = found
    others = [key for key in keys if key != summary.representative_key]
    shown, is_last = others[: ROWS_A_PAGE - 1], len(others) < ROWS_A_PAGE
    near: dict[str, str] = {}
    if summary.is_loose:
        near = {key: row.row_key for key, row in served.dedup.texts().nearest(shown).items()}
    first = summary.representative_key
    rows = _read_rows(served, first, shown, near)
    gone = [key for key in (first, *shown) if key not in rows.judged.digests]
    if first in gone and len(gone) <= len(shown):
        # The representative is gone: the others are beside the first row that is there.
        first = next(key for key in shown if key not in gone)
        rows = _read_rows(served, first, shown, near)
    digests = rows.judged.digests
    beside = {key: near[key] if near.get(key) in digests else first for key in shown if key != first}
    cards: dict[bytes, list[str]] = {}
    copies = []
    for key, other in beside.items():
        if key in digests and digests.get(other) == digests[key]:
            copies.append(key)
        elif key in digests and other in digests:
            cards.setdefault(digests[key], []).append(key)
    made: list[Card] = []
    for key, *same in cards.values():
        pair, shown_same = (beside[key], key), ", ".join(same)
        # Of two rows that are the nearest of each other, the card of the first one shows both.
        if same or not any({card.key_a, card.key_b} == {*pair} for card in made):
            made.append(_card(served, *pair, shown_same, rows.judged, rows.labels.get(pair), full, words))
    return GroupShown(summary, made, copies, gone, None if is_last else cursors.cursor_of((shown[-1],)))


def _read_rows(served: ServedTable, first: str, others: Sequence[str], near: Mapping[str, str]) -> ReviewRows:
    """Read rows, and the labels of each of the others with the first one and with the one near it."""
    pairs = [(row, key) for key in others for row in (first, near.get(key, first))]
    return served.review.rows([first, *others, *near.values()], pairs)


def _read_history(served: ServedTable, row_key: str, found: GroupShown | None) -> GroupHistory:
    """Return the history of an id, or of the group that is shown, if the key was never an id."""
    history = served.dedup.group_history(row_key)
    if history.changes or found is None or found.group.group_id == row_key:
        return history
    return served.dedup.group_history(found.group.group_id)


def _read_card(served: ServedTable, key_a: str, key_b: str, full: bool, words: Words, same: str = "") -> Card:
    rows = served.review.rows([key_a, key_b], [(key_a, key_b)])
    said = rows.labels.get((key_a, key_b))
    return _card(served, key_a, key_b, same, rows.judged, said, full, words)


def _card(
    served: ServedTable,
    key_a: str,
    key_b: str,
    same: str,
    judged: JudgedTexts,
    said: bool | None,
    full: bool,
    words: Words,
) -> Card:
    found = served.dedup.explain(key_a, key_b)
    columns = [
        ShownColumn(column.name, *marked(column.value_a, column.value_b, full)) for column in found.columns
    ]
    measured = [test.value for test in found.tests if test.value is not None]
    similarity = f"{measured[0]:.3f}" if measured else ""
    return Card(
        key_a,
        key_b,
        same,
        columns,
        found.distance,
        similarity,
        explained(found, words),
        said,
        _proof(judged, key_a, key_b),
    )


def _proof(judged: JudgedTexts, key_a: str, key_b: str) -> str:
    digests = (judged.digests.get(key, b"").hex() for key in (key_a, key_b))
    return ".".join((judged.recipe_digest or "", *digests))


def _judged(proof: str, key_a: str, key_b: str) -> JudgedTexts:
    """Return what was shown, from a form; RefusedError if it is none of ours."""
    try:
        recipe, digest_a, digest_b = proof.split(".")
        digests: Mapping[str, bytes] = {key_a: bytes.fromhex(digest_a), key_b: bytes.fromhex(digest_b)}
        if any(digest and len(digest) != len(NO_FEATURES_DIGEST) for digest in digests.values()):
            raise ValueError
    except ValueError:
        raise RefusedError("invalid", "The form is not complete: load the page again.") from None
    return JudgedTexts(recipe or None, {key: digest for key, digest in digests.items() if digest})
