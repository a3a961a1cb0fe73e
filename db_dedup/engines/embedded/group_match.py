"""Match some stored rows from their texts, as a full scan would match them."""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts, Stored
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import NO_ROW, Matches, match_table
from db_dedup.flow.matching.regrouping import Group
from db_dedup.flow.matching.rejections import rejected_rows
from db_dedup.progress import NullProgress
from db_dedup.records.fingerprints import AnswerRow, DigestPair
from db_dedup.store.pairs import StoredPairs


class StoredCanonicalRow(Stored, Protocol):
    """A stored canonical row."""

    @property
    def fingerprint(self) -> int | None: ...  # noqa: D102


def table_of(
    rows: Sequence[StoredCanonicalRow], texts: CandidateTexts, rejected: Collection[DigestPair]
) -> ComparedRows:
    """Return the rows as the matching takes them; a stale row has no fingerprint there."""
    digests = np.frombuffer(b"".join(row.digest for row in rows), np.uint64).reshape(-1, 2)
    places = [texts.place(row.digest) if texts.is_needed else 0 for row in rows]
    agree = [texts.within(place) if texts.is_needed and place is not None else 0 for place in places]
    return ComparedRows(
        np.array([row.fingerprint or 0 for row in rows], np.uint64),
        np.array(
            [
                row.fingerprint is not None and place is not None
                for row, place in zip(rows, places, strict=True)
            ],
            np.bool_,
        ),
        np.zeros((len(rows), 2), np.uint64),  # canonical rows have different digests: none need be compared
        np.array(agree, np.int32),
        texts.features(),
        texts.details(),
        np.array([place or 0 for place in places], np.int64),
        texts.sketches(),
        np.array([place or 0 for place in places], np.int64),
        rejected_rows(digests, rejected),
    )


def match_rows(
    watched: WatchedTable,
    canonical: Sequence[AnswerRow],
    texts: CandidateTexts,
    rejected: Collection[DigestPair],
) -> tuple[list[Group], StoredPairs]:
    """Return the groups and the pairs of these rows.

    Args:
        watched: the settings.
        canonical: canonical rows, in the order they were received.
        texts: has read the rows; a stale row is in no pair.
        rejected: pairs of texts that people have labelled as no duplicates.
    """
    table = table_of(canonical, texts, rejected)
    matches = match_table(table, Rule(watched.setting), watched.abridge_above, NullProgress())
    ids = np.array([row.id for row in canonical], np.int64)
    found = matches.pairs
    pairs = StoredPairs(ids[found.left], ids[found.right], found.distances, found.similarities, found.kinds)
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
