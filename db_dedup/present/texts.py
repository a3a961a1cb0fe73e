"""Pairs and groups with the texts of their rows, read some hundreds of rows at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from db_dedup.app import Deduplicator
from db_dedup.app.distinct_names import distinct_names
from db_dedup.app.row_texts import RowTexts
from db_dedup.dialects.batches import batches
from db_dedup.present.named_differences import named_differences
from db_dedup.records import DuplicatePair, GroupSummary, NearestRow

_PAIR_COLUMNS: Final = ("key_a", "key_b", "distance", "similarity")
_KIND_COLUMNS: Final = ("kind", "contained_key", "other_place", "form")
_MEMBER_COLUMNS: Final = ("group_id", "row_key", "is_representative")

_PAIRS_A_BATCH: Final = 500
_ROWS_A_BATCH: Final = 1_000
_GROUPS_A_BATCH: Final = 500

RowText = tuple[str, ...] | None
"""The texts of a row's watched columns, None for a row that is gone since the scan."""


class PairExtras(NamedTuple):
    """What is added to an export of pairs with texts: their kinds, and the names that only one row has."""

    kinds: bool
    differences: bool


@dataclass(frozen=True)
class Neighbour:
    """The row that another one of its group resembles most, and its text."""

    row: NearestRow
    text: RowText


@dataclass(frozen=True)
class Member:
    """A row in a group; `neighbour` is read for loose groups only."""

    group_id: str
    row_key: str
    is_representative: bool
    text: RowText
    neighbour: Neighbour | None = None


def read_pair_texts(
    reader: RowTexts, pairs: Iterable[DuplicatePair]
) -> Iterator[tuple[DuplicatePair, RowText, RowText]]:
    """Yield each pair with the texts of its rows."""
    for batch in reader.batches(pairs, _PAIRS_A_BATCH):
        texts = reader.read(list(dict.fromkeys(key for pair in batch for key in (pair.key_a, pair.key_b))))
        for pair in batch:
            yield pair, texts.get(pair.key_a), texts.get(pair.key_b)


def read_member_texts(
    dedup: Deduplicator, reader: RowTexts, groups: Iterable[GroupSummary], each: int | None = None
) -> Iterator[Member]:
    """Yield the rows of the groups, group by group, the representative first; at most `each` of a group."""
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
    """Yield the members, those of loose groups with the rows that they resemble most."""
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


def pair_columns(with_kinds: bool) -> tuple[str, ...]:
    """Return the names of the values of a pair that are shown."""
    return (*_PAIR_COLUMNS, *_KIND_COLUMNS) if with_kinds else _PAIR_COLUMNS


def _pair_values(pair: DuplicatePair, names: Sequence[str]) -> list[Any]:
    """Return the values of a pair that have these names."""
    return [getattr(pair, name) for name in names]


def pair_header(columns: Sequence[str], shown: PairExtras) -> list[str]:
    """Return the columns of an export of pairs with texts; `columns` are the names of the watched columns."""
    texts = [f"{side}_{name}" for side in ("a", "b") for name in columns]
    kinds = _KIND_COLUMNS if shown.kinds else ()
    return [*_PAIR_COLUMNS, *texts, "is_gone_a", "is_gone_b", *kinds, *(("differences",) * shown.differences)]


def pair_line(
    pair: DuplicatePair, text_a: RowText, text_b: RowText, width: int, shown: PairExtras
) -> list[Any]:
    """Return one pair under `pair_header`; `width` is the number of watched columns."""
    texts = [*_cells(text_a, width), *_cells(text_b, width), text_a is None, text_b is None]
    kinds = _pair_values(pair, _KIND_COLUMNS) if shown.kinds else []
    differences = [_differences(text_a, text_b)] if shown.differences else []
    return [*_pair_values(pair, _PAIR_COLUMNS), *texts, *kinds, *differences]


def _differences(text_a: RowText, text_b: RowText) -> dict[str, dict[str, tuple[str, ...]]] | None:
    """Return what only one of two rows names, as JSON has it; None if a row is gone."""
    if text_a is None or text_b is None:
        return None
    return {sort: found._asdict() for sort, found in named_differences(text_a, text_b).items()}


def member_header(columns: Sequence[str], with_differences: bool) -> list[str]:
    """Return the columns of an export of groups; a watched column named like ours gets the prefix own_."""
    added = ["is_gone", *(["differences"] if with_differences else [])]
    return [*_MEMBER_COLUMNS, *distinct_names(columns, [*_MEMBER_COLUMNS, *added]), *added]


def member_lines(members: Iterable[Member], width: int, with_differences: bool) -> Iterator[list[Any]]:
    """Yield the rows under `member_header`; a row's differences are from the representative of its group."""
    first: Member | None = None
    for member in members:
        if first is None or member.group_id != first.group_id:
            first = member
        key = [member.group_id, member.row_key, member.is_representative]
        differences = [_differences(first.text, member.text)] if with_differences else []
        yield [*key, *_cells(member.text, width), member.text is None, *differences]


def _cells(text: RowText, width: int) -> Sequence[str | None]:
    return [None] * width if text is None else text
