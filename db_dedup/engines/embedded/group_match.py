"""Some rows matched as a full scan would match them, from what is stored and their texts."""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts, Stored
from db_dedup.engines.embedded.matching import NO_ROW, Matches, Table, match_table
from db_dedup.engines.embedded.regrouping import Group
from db_dedup.engines.embedded.rejections import rejected_rows
from db_dedup.engines.embedded.table_scan import match_rule
from db_dedup.progress import NullProgress
from db_dedup.store.neighbours import AnswerRow
from db_dedup.store.pairs import StoredPairs
from db_dedup.store.verdicts import DigestPair


class Head(Stored, Protocol):
    """A row that is no copy."""

    @property
    def fingerprint(self) -> int | None: ...  # noqa: D102


def table_of(rows: Sequence[Head], texts: CandidateTexts, rejected: Collection[DigestPair]) -> Table:
    """The rows as the matching takes them; a stale one is as if it had too little text."""
    digests = np.frombuffer(b"".join(row.digest for row in rows), np.uint64).reshape(-1, 2)
    places = [texts.place(row.id) if texts.is_needed else 0 for row in rows]
    within: dict[str | None, int] = {}
    agree = [
        within.setdefault(texts.within(place), len(within)) if texts.is_needed and place is not None else 0
        for place in places
    ]
    return Table(
        np.array([row.fingerprint or 0 for row in rows], np.uint64),
        np.array(
            [
                row.fingerprint is not None and place is not None
                for row, place in zip(rows, places, strict=True)
            ],
            np.bool_,
        ),
        np.zeros((len(rows), 2), np.uint64),  # none of them is a copy of another
        np.array(agree, np.int32),
        texts.features(),
        np.array([place or 0 for place in places], np.int64),
        texts.sketches(),
        np.array([place or 0 for place in places], np.int64),
        rejected_rows(digests, rejected),
    )


def match_rows(
    watched: WatchedTable,
    heads: Sequence[AnswerRow],
    texts: CandidateTexts,
    rejected: Collection[DigestPair],
) -> tuple[list[Group], StoredPairs]:
    """Groups and pairs of these rows.

    Args:
        watched: the settings.
        heads: rows that are no copies, in the order they were received.
        texts: has read them; a stale one is in no pair.
        rejected: pairs of texts that are no duplicates, whatever the rule says.
    """
    table = table_of(heads, texts, rejected)
    rule = match_rule(watched.rule, watched.abridge_above)
    matches = match_table(table, rule, NullProgress())
    ids = np.array([row.id for row in heads], np.int64)
    found = matches.pairs
    pairs = StoredPairs(ids[found.left], ids[found.right], found.distances, found.similarities)
    return _groups(matches, ids.tolist()), pairs


def _groups(matches: Matches, ids: list[int]) -> list[Group]:
    members: dict[int, list[int]] = {}
    for row, group in enumerate(matches.group_of.tolist()):
        if group != NO_ROW:
            members.setdefault(group, []).append(ids[row])
    return [
        Group(ids[first], rows, bool(matches.is_loose[first]), bool(matches.is_abridged[first]), [])
        for first, rows in members.items()
    ]
