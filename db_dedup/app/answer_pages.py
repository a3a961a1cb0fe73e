"""The stored answer of one table in pages, for clients that read a part at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from db_dedup.app.arguments import kinds_of, require_count
from db_dedup.app.database import Database
from db_dedup.app.table_access import TableAccess
from db_dedup.progress import NullProgress
from db_dedup.records import DuplicatePair, GroupSummary
from db_dedup.records.kinds import Kind, PairFilter
from db_dedup.store import answer_pages
from db_dedup.store.answer_pages import GroupPlace, PairPlace


class AnswerPages:
    """Reads pairs, groups and members of one watched table, at most `limit` at a time."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._access = TableAccess(database, name, None, NullProgress())

    def pairs(
        self,
        after: PairPlace | None,
        limit: int,
        kinds: list[Kind] | None = None,
        other_place: bool | None = None,
    ) -> list[tuple[PairPlace, DuplicatePair]]:
        """Return pairs that follow a place, each with its own place.

        Args:
            after: the place of the last pair of the page before; None for the first page.
            limit: the most pairs.
            kinds: only pairs of these kinds.
            other_place: only pairs with the flag, or only those without it.
        """
        require_count(limit, "limit", 1)
        wanted = PairFilter(kinds_of(kinds), other_place)
        tables = self._database.tables
        with self._snapshot() as connection:
            return answer_pages.read_pair_page(connection, tables, self._name, after, limit, wanted)

    def groups(self, after: GroupPlace | None, limit: int) -> list[GroupSummary]:
        """Return groups that follow a place, the largest first."""
        require_count(limit, "limit", 1)
        database = self._database
        with database.translate_driver_errors(), database.engine.connect() as connection:
            self._access.require_stored(connection)
            return answer_pages.read_group_page(connection, database.tables, self._name, after, limit)

    def group_of(self, row_key: str, after: str | None, limit: int) -> tuple[GroupSummary, list[str]] | None:
        """Return the group of a row and some of its members; None if the row is in no group.

        Args:
            row_key: of any row of the group, its representative included.
            after: the last member of the page before; None for the first page, which begins with the
                representative. The others follow by row key.
            limit: the most members.
        """
        require_count(limit, "limit", 1)
        tables = self._database.tables
        with self._snapshot() as connection:
            group = answer_pages.read_group_of(connection, tables, self._name, row_key)
            if group is None:
                return None
            first = [group.representative_key] if after is None else []
            left = limit - len(first)
            others = answer_pages.read_member_page(
                connection, tables, self._name, group.group_id, after, left
            )
            return group, [*first, *others]

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        """Open a connection whose queries, several for one page, see the same answer."""
        database = self._database
        with (
            database.translate_driver_errors(),
            database.dialect.read_snapshot(database.engine) as connection,
        ):
            self._access.require_stored(connection)
            yield connection
