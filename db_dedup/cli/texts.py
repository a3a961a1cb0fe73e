"""Pairs and groups with the texts of their rows, read some hundreds of rows at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Any, Final

import typer

from db_dedup.app import Deduplicator
from db_dedup.app.row_texts import RowTexts
from db_dedup.dialects.batches import batches
from db_dedup.records import DuplicatePair, GroupSummary, NearestRow

PAIR_COLUMNS: Final = ("key_a", "key_b", "distance", "similarity")
MEMBER_COLUMNS: Final = ("group_id", "row_key", "is_representative")

_PAIRS_A_BATCH: Final = 500
_ROWS_A_BATCH: Final = 1_000
_GROUPS_A_BATCH: Final = 500

Texts = Annotated[
    bool,
    typer.Option(
        "--texts",
        envvar="DB_DEDUP_TEXTS",
        help="With the texts of the rows: in a table side by side, else in columns of their own.",
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full", envvar="DB_DEDUP_FULL", help="In a table, show whole texts; without it, long ones are cut."
    ),
]

RowText = tuple[str, ...] | None
"""The texts of a row's watched columns, None for a row that is gone since the scan."""


@dataclass(frozen=True)
class Neighbour:
    """The row that another one of its group resembles most, and its text."""

    row: NearestRow
    text: RowText


@dataclass(frozen=True)
class Member:
    """A row in a group; `neighbour` is asked for in loose groups alone."""

    group_id: str
    row_key: str
    is_representative: bool
    text: RowText
    neighbour: Neighbour | None = None


def read_pair_texts(
    reader: RowTexts, pairs: Iterable[DuplicatePair]
) -> Iterator[tuple[DuplicatePair, RowText, RowText]]:
    """Each pair with the texts of its rows."""
    for batch in reader.batches(pairs, _PAIRS_A_BATCH):
        texts = reader.read(list(dict.fromkeys(key for pair in batch for key in (pair.key_a, pair.key_b))))
        for pair in batch:
            yield pair, texts.get(pair.key_a), texts.get(pair.key_b)


def read_member_texts(
    dedup: Deduplicator, reader: RowTexts, groups: Iterable[GroupSummary], each: int | None = None
) -> Iterator[Member]:
    """The rows of the groups, group by group, the representative first; of each group at most so many."""
    for some in batches(groups, _GROUPS_A_BATCH):
        members = dedup.members_of([group.group_id for group in some], each)
        rows = ((group_id, key) for group_id, keys in members.items() for key in keys)
        for batch in reader.batches(rows, _ROWS_A_BATCH):
            texts = reader.read([key for _, key in batch])
            for group_id, key in batch:
                yield Member(group_id, key, key == group_id, texts.get(key))


def read_neighbours(
    reader: RowTexts, groups: Iterable[GroupSummary], members: Iterable[Member]
) -> Iterator[Member]:
    """The members, those of loose groups with the rows that they resemble most."""
    loose = {group.group_id for group in groups if group.is_loose}
    for is_loose, some in groupby(members, key=lambda member: member.group_id in loose):
        if not is_loose:
            yield from some
            continue
        for batch in reader.batches(some, _ROWS_A_BATCH):
            nearest = reader.nearest([member.row_key for member in batch])
            texts = reader.read(list({row.row_key for row in nearest.values()}))
            for member in batch:
                row = nearest.get(member.row_key)
                neighbour = None if row is None else Neighbour(row, texts.get(row.row_key))
                yield replace(member, neighbour=neighbour)


def pair_header(columns: Sequence[str]) -> list[str]:
    """The columns of an export of pairs."""
    texts = [f"{side}_{name}" for side in ("a", "b") for name in columns]
    return [*PAIR_COLUMNS, *texts, "is_gone_a", "is_gone_b"]


def pair_line(pair: DuplicatePair, text_a: RowText, text_b: RowText, width: int) -> list[Any]:
    """One pair under `pair_header`; `width` is the number of watched columns."""
    keys = [pair.key_a, pair.key_b, pair.distance, pair.similarity]
    return [*keys, *_cells(text_a, width), *_cells(text_b, width), text_a is None, text_b is None]


def member_header(columns: Sequence[str]) -> list[str]:
    """The columns of an export of groups; a column that is called as one of ours is prefixed with own_."""
    ours = {*MEMBER_COLUMNS, "is_gone"}
    return [*MEMBER_COLUMNS, *(f"own_{name}" if name in ours else name for name in columns), "is_gone"]


def member_line(member: Member, width: int) -> list[Any]:
    """One row under `member_header`."""
    key = [member.group_id, member.row_key, member.is_representative]
    return [*key, *_cells(member.text, width), member.text is None]


def _cells(text: RowText, width: int) -> Sequence[str | None]:
    return [None] * width if text is None else text
