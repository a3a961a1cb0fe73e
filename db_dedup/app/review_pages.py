"""The groups of one table for people who review them: lists by order and filter, rows with their labels."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection

from db_dedup.app.database import Database
from db_dedup.app.table_access import TableAccess
from db_dedup.errors import NotScannedError, UnknownNameError
from db_dedup.flow.text.normalise import fold_batch, normalise_batch
from db_dedup.jobs.review.labels import digests_of
from db_dedup.progress import NullProgress
from db_dedup.records import Family, JudgedTexts
from db_dedup.records.fingerprints import DigestPair, digest_pair
from db_dedup.records.reviews import EVERY_GROUP, GroupFilter, GroupOrder
from db_dedup.store import review_pages
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.given_keys import read_given
from db_dedup.store.review_candidates import find_candidates
from db_dedup.store.review_pages import GroupContents, GroupTotals, ReviewedGroup, SizePlace
from db_dedup.store.source import Source

_GROUPS_A_CHUNK: Final = 100
"""Groups that are read at a time while a filter looks for some of them."""
_ROWS_A_CHUNK: Final = 1_000
"""Of the user's table, while a filter looks for a value."""
_SHARE_OF_CANDIDATES: Final = 0.6
"""Of the time for a page: to find the few groups that can fit."""

Place = tuple[int, int, str]
"""Part of the order, size or id of a row, group id: where a page of groups ended."""


class GroupPage(NamedTuple):
    """Some groups.

    Attributes:
        groups: with what they contain.
        place: to go on from; None if there is nothing more.
        is_cut: the time ran out before the page was full.
    """

    groups: list[tuple[ReviewedGroup, GroupContents]]
    place: Place | None
    is_cut: bool


@dataclass(frozen=True)
class ReviewRows:
    """Rows as they are now.

    Attributes:
        texts: row key -> the texts of the watched columns, "" for NULL; rows that are gone are left out.
        judged: the same texts as digests, to label exactly these.
        labels: pair of row keys -> whether people said duplicates.
    """

    texts: Mapping[str, tuple[str, ...]]
    judged: JudgedTexts
    labels: Mapping[tuple[str, str], bool]


class _Part(NamedTuple):
    groups: list[ReviewedGroup]
    place: Place | None


class ReviewPages:
    """Reads what the pages of a review show."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._access = TableAccess(database, name, None, NullProgress())

    def columns(self) -> tuple[str, ...]:
        """Return the names of the watched columns."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            return tuple(self._access.require_stored(connection).watched.columns)

    def has_days(self) -> bool:
        """Return whether groups can be found by the day of receipt: the order column holds dates or texts."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            column = self._source(connection).order_column
            return column is not None and column.family in (Family.DATE, Family.TEXT)

    def totals(self) -> GroupTotals | None:
        """Return how many groups there are, and how many rows in them; None before the first scan."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            try:
                stored = self._access.require_stored(connection)
            except (NotScannedError, UnknownNameError):
                return None
            return review_pages.read_totals(connection, self._access.store(stored))

    def texts(self, row_keys: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return row key -> the texts of the watched columns now, without rows that are gone."""
        with self._database.translate_driver_errors():
            with self._database.engine.connect() as connection:
                source = self._source(connection)
            rows = read_given(self._database.source_engine.connect, source, row_keys)
        return {row.row_key: row.values for row in rows}

    def groups(
        self,
        order: GroupOrder,
        wanted: GroupFilter,
        after: Place | None,
        limit: int,
        seconds: float = 0.2,
    ) -> GroupPage:
        """Return some of the groups that are wanted.

        If few groups can fit the filter, these are read. Otherwise all groups are read in their order and the
        wanted ones are kept, until the page is full or the time is over: such a page can be short, or empty,
        and have a next one.

        Args:
            order: of the groups.
            wanted: which of them.
            after: where the page before ended; None for the first one.
            limit: the most groups.
            seconds: after which no more groups are read.
        """
        begun = time.monotonic()
        end = begun + seconds
        if wanted.is_loose is not None and order == "loose":
            order = "size"  # the same order, and the groups that are not wanted are not read
        kept: list[tuple[ReviewedGroup, GroupContents]] = []
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
            store = self._access.store(stored)
            source = self._source(connection) if wanted.column else None
            chunk = limit + 1 if wanted == EVERY_GROUP else _GROUPS_A_CHUNK
            few = find_candidates(connection, store, wanted, begun + seconds * _SHARE_OF_CANDIDATES)
            if few is None:
                parts = _parts(connection, store, order, wanted, after, chunk)
            else:
                parts = _parts_of(review_pages.read_chosen(connection, store, few), order, after)
            if source is not None:
                parts = _cut_by_rows(parts, order)
            place: Place | None = None  # at once, if no group is left after the page before
            for part in parts:
                found = list(self._wanted(connection, store, source, part.groups, wanted))
                room = limit - len(kept)
                kept += found[:room]
                place = part.place
                if len(found) > room:
                    return GroupPage(kept, _place_of(order, kept[-1][0]), False)
                if place is None or len(kept) == limit:
                    break
                if time.monotonic() > end:
                    return GroupPage(kept, place, True)
        return GroupPage(kept, place, False)

    def rows(self, row_keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> ReviewRows:
        """Return rows as they are now, and the labels of pairs of them."""
        database = self._database
        with database.translate_driver_errors():
            with database.engine.connect() as connection:
                stored = self._access.require_stored(connection).require_current()
                _, source = self._access.source(connection, stored.watched)
            rows = read_given(database.source_engine.connect, source, row_keys)
            digests = digests_of(stored.watched, rows)
            # Rows with the same text share a digest, so several of the pairs can have one label.
            of_digests: dict[DigestPair, list[tuple[str, str]]] = {}
            for a, b in pairs:
                if a in digests and b in digests:
                    of_digests.setdefault(digest_pair(digests[a], digests[b]), []).append((a, b))
            with database.engine.connect() as connection:
                store = self._access.store(stored)
                labels = review_pages.read_labels_of(connection, store, of_digests)
        return ReviewRows(
            {row.row_key: row.values for row in rows},
            JudgedTexts(stored.recipe_digest, digests),
            {pair: said for both, said in labels.items() for pair in of_digests[both]},
        )

    def _source(self, connection: Connection) -> Source:
        return self._access.source(connection, self._access.require_stored(connection).watched)[1]

    def _wanted(
        self,
        connection: Connection,
        store: FingerprintStore,
        source: Source | None,
        groups: Sequence[ReviewedGroup],
        wanted: GroupFilter,
    ) -> Iterator[tuple[ReviewedGroup, GroupContents]]:
        """Yield those of the groups that are wanted, the cheapest conditions first."""
        left = [g for g in groups if wanted.is_loose in (None, g.is_loose)]
        if left and (wanted.since or wanted.until):
            among = review_pages.groups_received(connection, store, left, wanted.since, wanted.until)
            left = [group for group in left if group.id in among]
        # The values are in the user's table, which is the slowest to read.
        is_by_contents = wanted.kind is not None or wanted.other_place is not None
        contents: dict[int, GroupContents] = {}
        if left and is_by_contents:
            contents = review_pages.read_contents(connection, store, left)
            left = [group for group in left if _has(contents[group.id], wanted)]
        if left and source is not None:
            among = self._with_value(connection, store, source, left, wanted)
            left = [group for group in left if group.id in among]
        if left and not is_by_contents:
            contents = review_pages.read_contents(connection, store, left)
        for group in left:
            yield group, contents[group.id]

    def _with_value(
        self,
        connection: Connection,
        store: FingerprintStore,
        source: Source,
        groups: Sequence[ReviewedGroup],
        wanted: GroupFilter,
    ) -> set[int]:
        """Return the ids of the groups with a row that has the wanted value, as a scan compares values."""
        watched = self._access.require_stored(connection).watched
        place = source.value_names.index(str(wanted.column))
        is_text = watched.columns[str(wanted.column)].kind == "text"
        normalise = normalise_batch if is_text else fold_batch
        (value,) = normalise([wanted.value or ""])
        if not value:  # a link, or nothing but masks: normalised texts have none
            normalise = fold_batch
            (value,) = normalise([wanted.value or ""])
        of_key = {key: group for group, key in review_pages.read_member_keys(connection, store, groups)}
        found: set[int] = set()
        keys = list(of_key)
        for begin in range(0, len(keys), _ROWS_A_CHUNK):
            rows = read_given(
                self._database.source_engine.connect, source, keys[begin : begin + _ROWS_A_CHUNK]
            )
            texts = normalise([row.values[place] for row in rows])
            found.update(
                of_key[row.row_key]
                for row, text in zip(rows, texts, strict=True)
                if (value in text if is_text else value == text)
            )
        return found


def _parts(
    connection: Connection,
    store: FingerprintStore,
    order: GroupOrder,
    wanted: GroupFilter,
    after: Place | None,
    chunk: int,
) -> Iterator[_Part]:
    """Yield the groups after a place in their order, some at a time."""
    if order == "newest":
        before = None if after is None else after[1]
        while True:
            groups, before = review_pages.read_newest(connection, store, before, 2 * chunk)
            yield _Part(groups, None if before is None else (0, before, ""))
            if before is None:
                return
    # Ordered by looseness, the loose groups are the first part.
    looseness: Sequence[bool | None] = (True, False) if order == "loose" else (wanted.is_loose,)
    part, place = (0, None) if after is None else (after[0], SizePlace(*after[1:]))
    while part < len(looseness):
        groups = review_pages.read_largest(connection, store, place, chunk, looseness[part])
        is_last = len(groups) < chunk
        if not is_last:
            place = SizePlace(groups[-1].size, groups[-1].group_id)
            yield _Part(groups, (part, *place))
            continue
        part, place = part + 1, None
        # A place before every group of the next part.
        following = None if part == len(looseness) else (part, _BEFORE_ALL, "")
        yield _Part(groups, following)


def _parts_of(groups: Sequence[ReviewedGroup], order: GroupOrder, after: Place | None) -> Iterator[_Part]:
    """Yield groups after a place in an order, some at a time."""
    ordered = sorted(groups, key=lambda group: _rank(_place_of(order, group)), reverse=True)
    if after is not None:
        ordered = [group for group in ordered if _rank(_place_of(order, group)) < _rank(after)]
    for begin in range(0, len(ordered), _GROUPS_A_CHUNK):
        some = ordered[begin : begin + _GROUPS_A_CHUNK]
        is_last = begin + _GROUPS_A_CHUNK >= len(ordered)
        yield _Part(some, None if is_last else _place_of(order, some[-1]))


def _cut_by_rows(parts: Iterable[_Part], order: GroupOrder) -> Iterator[_Part]:
    """Yield the same groups, of each part as many at a time as have so many rows that a filter looks at."""
    for part in parts:
        begin = rows = 0
        for i, group in enumerate(part.groups):
            looked_at = min(group.size, review_pages.LARGE)
            if i > begin and rows + looked_at > _ROWS_A_CHUNK:
                yield _Part(part.groups[begin:i], _place_of(order, part.groups[i - 1]))
                begin, rows = i, 0
            rows += looked_at
        yield _Part(part.groups[begin:], part.place)


def _rank(place: Place) -> tuple[int, int, str]:
    """Return what a place is ordered by, the highest first."""
    part, number, group_id = place
    return -part, number, group_id


_BEFORE_ALL: Final = (1 << 31) - 1


def _place_of(order: GroupOrder, group: ReviewedGroup) -> Place:
    if order == "newest":
        return 0, group.newest, ""
    part = int(order == "loose" and not group.is_loose)
    return part, group.size, group.group_id


def _has(contents: GroupContents, wanted: GroupFilter) -> bool:
    is_of_kind = wanted.kind is None or wanted.kind in contents.kinds
    return is_of_kind and wanted.other_place in (None, contents.other_place)
