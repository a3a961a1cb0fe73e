"""Read the rows of a group for its page: two of them side by side, with the reasons and their label."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from db_dedup.app.review_pages import ReviewRows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.records import Decision, GroupSummary, JudgedTexts
from db_dedup.web import cursors
from db_dedup.web.console.explaining import ShownExplanation, explained
from db_dedup.web.console.marking import TextPart, marked
from db_dedup.web.console.words import Words
from db_dedup.web.problems import RefusedError
from db_dedup.web.tables import ServedTable

_ROWS_A_PAGE: Final = 6
"""The representative, which every page begins with, and five others."""


class ShownColumn(NamedTuple):
    """One column of two rows."""

    name: str
    left: list[TextPart]
    right: list[TextPart]


class Card(NamedTuple):
    """Two rows side by side.

    Attributes:
        same: the keys of other rows of this page with the same text as the second row, as they are shown.
        is_copy: the two rows are exact duplicates, which take no label.
        said: the label of the two; None if there is none.
        proof: digests of the two texts and of the recipe, so that a label is of what was shown.
    """

    key_a: str
    key_b: str
    same: str
    columns: list[ShownColumn]
    distance: int | None
    similarity: str
    shown: ShownExplanation
    said: bool | None
    is_copy: bool
    proof: str


class GroupShown(NamedTuple):
    """What the page of a group shows.

    Attributes:
        cards: each row beside the representative, or beside the row that it resembles most; of a page with
            nothing but exact duplicates, the first of them.
        copies: keys of the rows with the same text as the row that they would be beside.
        gone: keys of the rows that are no longer in the table.
    """

    group: GroupSummary
    cards: list[Card]
    copies: list[str]
    gone: list[str]
    next_cursor: str | None


class CardReader:
    """Reads the cards of one table for one request.

    Args:
        served: the table.
        full: show whole texts, and not only what is around their differences.
        words: of the reader's language.
    """

    def __init__(self, served: ServedTable, full: bool, words: Words) -> None:
        self._served, self._full, self._words = served, full, words

    def group(self, row_key: str, after: str | None) -> GroupShown | None:
        """Return a page of the group that a row is in, after the row of a cursor; None if it is in none."""
        found = self._served.pages.group_of(row_key, after, _ROWS_A_PAGE + 1 - (after is not None))
        if found is None:
            return None
        summary, keys = found
        others = [key for key in keys if key != summary.representative_key]
        shown, is_last = others[: _ROWS_A_PAGE - 1], len(others) < _ROWS_A_PAGE
        near: dict[str, str] = {}
        if summary.is_loose:
            near = {key: row.row_key for key, row in self._served.dedup.texts().nearest(shown).items()}
        first = summary.representative_key
        rows = self._rows(first, shown, near)
        gone = [key for key in (first, *shown) if key not in rows.judged.digests]
        if first in gone and len(gone) <= len(shown):
            # The representative is gone: the others are beside the first row that is there.
            first = next(key for key in shown if key not in gone)
            rows = self._rows(first, shown, near)
        digests = rows.judged.digests
        beside = {key: near[key] if near.get(key) in digests else first for key in shown if key != first}
        copies = [
            key for key, other in beside.items() if key in digests and digests.get(other) == digests[key]
        ]
        cards = self._cards({key: other for key, other in beside.items() if key not in copies}, rows)
        if copies and not cards:
            cards = [self._card(beside[copies[0]], copies[0], "", rows)]
        return GroupShown(summary, cards, copies, gone, None if is_last else cursors.cursor_of((shown[-1],)))

    def card(self, key_a: str, key_b: str, same: str = "") -> Card:
        """Return two rows, whether they are a pair or not; `same` as in `Card`."""
        rows = self._served.review.rows([key_a, key_b], [(key_a, key_b)])
        return self._card(key_a, key_b, same, rows)

    def _rows(self, first: str, others: Sequence[str], near: Mapping[str, str]) -> ReviewRows:
        """Read rows, and the labels of each of the others with the first one and with the one near it."""
        pairs = [(row, key) for key in others for row in (first, near.get(key, first))]
        return self._served.review.rows([first, *others, *near.values()], pairs)

    def _cards(self, beside: Mapping[str, str], rows: ReviewRows) -> list[Card]:
        """Return a card for each different text among the rows that are there.

        Args:
            beside: row key -> the key of the row that it is shown beside.
            rows: these rows.
        """
        digests = rows.judged.digests
        by_text: dict[bytes, list[str]] = {}
        for key, other in beside.items():
            if key in digests and other in digests:
                by_text.setdefault(digests[key], []).append(key)
        cards: list[Card] = []
        for key, *same in by_text.values():
            # Of two rows that are the nearest of each other, the card of the first one shows both.
            if same or not any({card.key_a, card.key_b} == {beside[key], key} for card in cards):
                cards.append(self._card(beside[key], key, ", ".join(same), rows))
        return cards

    def _card(self, key_a: str, key_b: str, same: str, rows: ReviewRows) -> Card:
        found = self._served.dedup.explain(key_a, key_b)
        measured = [test.value for test in found.tests if test.value is not None]
        return Card(
            key_a,
            key_b,
            same,
            columns=[
                ShownColumn(column.name, *marked(column.value_a, column.value_b, self._full))
                for column in found.columns
            ],
            distance=found.distance,
            similarity=f"{measured[0]:.3f}" if measured else "",
            shown=explained(found, self._words),
            said=rows.labels.get((key_a, key_b)),
            is_copy=found.decision is Decision.COPIES,
            proof=_proof(rows.judged, key_a, key_b),
        )


def judged_texts(proof: str, key_a: str, key_b: str) -> JudgedTexts:
    """Return the texts that a card showed, by the proof in its form; RefusedError if it is none of ours."""
    try:
        recipe, digest_a, digest_b = proof.split(".")
        digests: Mapping[str, bytes] = {key_a: bytes.fromhex(digest_a), key_b: bytes.fromhex(digest_b)}
        if any(digest and len(digest) != len(NO_FEATURES_DIGEST) for digest in digests.values()):
            raise ValueError
    except ValueError:
        raise RefusedError("invalid", "The form is not complete: load the page again.") from None
    return JudgedTexts(recipe or None, {key: digest for key, digest in digests.items() if digest})


def _proof(judged: JudgedTexts, key_a: str, key_b: str) -> str:
    digests = (judged.digests.get(key, b"").hex() for key in (key_a, key_b))
    return ".".join((judged.recipe_digest or "", *digests))
