"""Two writers whose transactions interleave; what one has touched, the other leaves alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from tests.worker.history.steps import KEYS, Step
from tests.worker.watched import Row, Watched

_COLUMNS = ("body", "region", "received")


class Writer:
    """One of them: its transaction, and what was in the rows that it has touched.

    Attributes:
        level: of isolation, if not the usual one; then it may meet another transaction and fail.
        retries: what has failed is done once more.
        steps: of this transaction.
    """

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.before: dict[int, Row | None] = {}
        self.level: str | None = None
        self.retries = False
        self.steps: list[Step] = []


class Writers:
    """Plays the steps that write.

    Attributes:
        rows: what the table holds, as far as the writers know.
        touched: rows that were written, also by a transaction that has not ended or was rolled back.
    """

    def __init__(self, watched: Watched, engine: Engine, levels: Sequence[str]) -> None:
        """Take the writers' engine, and the levels of isolation that its database has beside the usual."""
        self._watched, self._letters, self._engine = watched, watched.letters, engine
        self._levels = levels
        self._writers = [Writer(), Writer()]
        self._last_body: dict[int, str | None] = {}
        self.rows: dict[int, Row] = {}
        self.touched: set[int] = set()

    @property
    def any_open(self) -> bool:
        """Some transaction has not ended."""
        return any(writer.connection for writer in self._writers)

    def is_open(self, who: int) -> bool:
        """This writer's transaction has not ended."""
        return self._writers[who].connection is not None

    def begin(self, who: int, level: str, retries: bool) -> None:
        """Begin a transaction that goes on seeing the table as it is now, unless one is open."""
        writer = self._writers[who]
        if writer.connection or level not in self._levels:
            return
        writer.level, writer.retries = level, retries
        self._connected(who).execute(select(func.count()).select_from(self._letters))

    def write(self, step: Step) -> None:
        """Play a step; where it meets another transaction, all of its own is done once more, or given up."""
        writer = self._writers[step.who]
        try:
            self._write(step)
            writer.steps.append(step)
        except DBAPIError as error:
            steps = [*writer.steps, step]
            if self._gives_up(step.who, error):
                return
            for again in steps:
                self.write(again)

    def clear(self, who: int) -> None:
        """TRUNCATE where a trigger sees it; no other transaction could go on beside it."""
        if self.any_open:
            return
        has_truncate = self._engine.dialect.name == "postgresql"
        self._execute(who, text(f"TRUNCATE {self._letters.name}") if has_truncate else delete(self._letters))
        self.touched.update(KEYS)
        self.rows.clear()
        self.end(who, commits=True)

    def end(self, who: int, commits: bool) -> None:
        """End the transaction of a writer, if there is one."""
        writer = self._writers[who]
        try:
            if commits and writer.connection:
                writer.connection.commit()
        except DBAPIError as error:
            steps = writer.steps
            if not self._gives_up(who, error):
                for again in steps:
                    self.write(again)
                self.end(who, commits=True)
            return
        self._close(who, is_kept=commits)

    def end_all(self, commits: bool) -> None:
        """End both."""
        for who in range(len(self._writers)):
            self.end(who, commits)

    def lose_all(self) -> None:
        """Both have lost their sessions."""
        for who, writer in enumerate(self._writers):
            if writer.connection:
                writer.connection.invalidate()
                self._close(who, is_kept=False)

    def read_all(self) -> None:
        """See what the table holds after somebody else has written."""
        self.touched.update(KEYS)
        columns = [self._letters.c[name] for name in _COLUMNS]
        with self._engine.connect() as connection:
            found = (
                (key, connection.execute(select(*columns).where(self._watched.at(key))).first())
                for key in KEYS
            )
            self.rows = {key: (row.body, row.region, row.received) for key, row in found if row}

    def is_being_written(self, *keys: int) -> bool:
        """A transaction that has not ended has touched one of these rows."""
        return any(key in writer.before for writer in self._writers for key in keys)

    def forget(self) -> None:
        """The table is empty."""
        self.touched.clear()
        self.rows.clear()
        self._last_body.clear()

    # Transactions

    def _gives_up(self, who: int, error: DBAPIError) -> bool:
        """Roll back; whether the writer leaves it at that, or has begun once more.

        Raises:
            DBAPIError: all writers are at READ COMMITTED, where none should fail.
        """
        writer = self._writers[who]
        level, retries = writer.level, writer.retries
        may_fail = any(one.level for one in self._writers)
        if not may_fail or not self._watched.dedup.database.dialect.translate_error(error).is_transient:
            raise error
        self._close(who, is_kept=False)
        if retries and level:
            self.begin(who, level, retries=False)
        return not retries

    def _close(self, who: int, is_kept: bool) -> None:
        writer, self._writers[who] = self._writers[who], Writer()
        if writer.connection is None:
            return
        if not is_kept:
            for key, row in writer.before.items():
                if row is None:
                    self.rows.pop(key, None)
                else:
                    self.rows[key] = row
        writer.connection.close()

    def _connected(self, who: int) -> Connection:
        writer = self._writers[who]
        if writer.connection is None:
            writer.connection = self._engine.connect()
            if writer.level:
                writer.connection.execution_options(isolation_level=writer.level)
        return writer.connection

    def _execute(self, who: int, statement: Any) -> bool:
        """Whether the statement found a row: an old snapshot may show none."""
        return bool(self._connected(who).execute(statement).rowcount)

    # Rows

    def _write(self, step: Step) -> None:
        what, who, key, value = step
        if what == "load":
            row, many = value
            for k in range(key, min(key + many, len(KEYS))):
                self._put(who, k, row)
        elif what == "insert":
            self._put(who, key, value)
        elif key in self.rows and self._is_free(who, key):
            self._change(who, key, what, value)

    def _change(self, who: int, key: int, what: str, value: Any) -> None:
        body, region, received = self.rows[key]
        match what:
            case "body":
                self._last_body[key] = body
                self._set(who, key, (value, region, received))
            case "back":
                self._set(who, key, (self._last_body.get(key, body), region, received))
            case "region":
                self._set(who, key, (body, value, received))
            case "received":
                self._set(who, key, (body, region, value))
            case "delete":
                self._remember(who, key)
                if self._execute(who, self._watched.deletion(key)):
                    del self.rows[key]
            case "move":
                self._move(who, key, value)

    def _put(self, who: int, key: int, row: Row) -> None:
        if key in self.rows or not self._is_free(who, key):
            return
        self._remember(who, key)
        self._execute(who, insert(self._letters).values(**self._watched.key(key), **values(row)))
        self.rows[key] = row

    def _set(self, who: int, key: int, row: Row) -> None:
        self._remember(who, key)
        if self._execute(who, update(self._letters).where(self._watched.at(key)).values(**values(row))):
            self.rows[key] = row

    def _move(self, who: int, key: int, to: int) -> None:
        if to in self.rows or not self._is_free(who, to):
            return
        self._remember(who, key)
        self._remember(who, to)
        moved = update(self._letters).where(self._watched.at(key)).values(**self._watched.key(to))
        if self._execute(who, moved):
            self.rows[to] = self.rows.pop(key)

    def _is_free(self, who: int, key: int) -> bool:
        return key not in self._writers[1 - who].before

    def _remember(self, who: int, key: int) -> None:
        self.touched.add(key)
        self._writers[who].before.setdefault(key, self.rows.get(key))


def values(row: Row) -> dict[str, Any]:
    """A row by its columns."""
    return dict(zip(_COLUMNS, row, strict=True))
