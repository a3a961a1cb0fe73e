"""Random histories: two writers whose transactions interleave, and workers in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, Table, delete, event, insert, text, update

from tests.worker.watched import Row, Watched

KEYS = range(10)
WORDS = [f"word{i}" for i in range(8)]
BASES = tuple(
    sentence.split()
    for sentence in (
        "lamp dark street months nobody repairs light children school",
        "water stops every night estate manager answers nothing money",
        "noise building site until morning old people cannot sleep",
    )
)


class Step(NamedTuple):
    """One thing that happens: what, who does it, and with what."""

    what: str
    who: int
    key: int = 0
    value: Any = None


def _body(base: int, edits: list[tuple[int, str]], form: str) -> str | None:
    words = list(BASES[base])
    for place, word in edits:
        words[place] = word
    match form:
        case "nothing":
            return None
        case "short":
            return " ".join(words[:2])
        case "turned":
            return " ".join(reversed(words))
        case "loud":
            return " ".join(words).upper() + "  "
    return " ".join(words)


_edit = st.tuples(st.integers(0, 8), st.sampled_from(WORDS))
edits = st.lists(_edit, max_size=1) | st.lists(_edit, max_size=3)
forms = st.sampled_from(["plain", "plain", "plain", "turned", "loud", "short", "nothing"])
bodies = st.builds(_body, st.sampled_from([0, 0, 1, 2]), edits, forms)
regions = st.sampled_from(["A", "A", "B", "C"])
moments = st.sampled_from([None, 1, 2, 3])
rows = st.tuples(bodies, regions, moments)

_who = st.integers(0, 1)
_key = st.sampled_from(KEYS)


def _steps(what: str, value: st.SearchStrategy[Any] = st.none()) -> st.SearchStrategy[Step]:  # noqa: B008
    return st.builds(Step, st.just(what), _who, _key, value)


steps = st.one_of(
    _steps("insert", rows),
    _steps("insert", rows),
    _steps("load", st.tuples(rows, st.integers(2, 5))),
    _steps("body", bodies),
    _steps("body", bodies),
    _steps("back"),
    _steps("region", regions),
    _steps("received", moments),
    _steps("move", _key),
    _steps("delete"),
    _steps("commit"),
    _steps("commit"),
    _steps("rollback"),
    _steps("work", st.one_of(st.none(), st.integers(2, 25))),
    _steps("work", st.one_of(st.none(), st.integers(2, 25))),
)
rare = st.one_of(_steps("clear"), _steps("scan"))


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Some rows to begin with, then steps; in some histories one of the rare ones."""
    first = draw(st.lists(rows, min_size=3, max_size=len(KEYS)))
    later = draw(st.lists(steps, max_size=25))
    if draw(st.integers(0, 3)) == 3:
        later.insert(draw(st.integers(0, len(later))), draw(rare))
    return [*(Step("insert", 0, key, row) for key, row in enumerate(first)), Step("commit", 0), *later]


class History:
    """Plays steps on a database; what one transaction has touched, the other leaves alone."""

    def __init__(self, watched: Watched, writers: Engine, one_writer: bool) -> None:
        self.watched, self._letters = watched, watched.letters
        self._engine, self._one_writer = writers, one_writer
        self._workers = watched.workers()
        self._connections: list[Connection | None] = [None, None]
        self._before: list[dict[int, Row | None]] = [{}, {}]
        self._rows: dict[int, Row] = {}
        self._last_body: dict[int, str | None] = {}

    def play(self, history: list[Step]) -> None:
        """All steps, from an empty table to an empty queue."""
        self.watched.empty()
        self._rows.clear()
        try:
            for step in history:
                self._do(step)
            for who in (0, 1):
                self._end(who, commits=True)
        finally:
            for who in (0, 1):
                self._end(who, commits=False)
        self.drain()

    def drain(self) -> None:
        """Let the workers take turns until nothing is left."""
        while not all(worker.is_drained() for worker in self._workers):
            for worker in self._workers:
                worker.step()

    def _do(self, step: Step) -> None:
        match step.what:
            case "commit" | "rollback":
                self._end(step.who, commits=step.what == "commit")
            case "work":
                self._work(step)
            case "scan":
                if not (self._one_writer and any(self._connections)):
                    self.watched.dedup.scan()
            case "clear":
                self._clear(step.who)
            case _:
                if not (self._one_writer and self._connections[1 - step.who]):
                    self._write(step)

    def _work(self, step: Step) -> None:
        if self._one_writer:
            if not any(self._connections):
                self._workers[step.who].step()
            return
        with self._before_statement(step.value, lambda: self._end(step.key % 2, commits=True)):
            self._workers[step.who].step()

    @contextmanager
    def _before_statement(self, number: int | None, do: Callable[[], None]) -> Iterator[None]:
        """Do something right before the worker's statement of this number."""
        numbers = count(1)

        def watch(*_: object) -> None:
            if next(numbers) == number:
                do()

        engine = self.watched.dedup.database.engine
        event.listen(engine, "before_cursor_execute", watch)
        try:
            yield
        finally:
            event.remove(engine, "before_cursor_execute", watch)

    # Writers

    def _write(self, step: Step) -> None:
        what, who, key, value = step
        if what == "load":
            row, many = value
            for k in range(key, min(key + many, len(KEYS))):
                self._put(who, k, row)
        elif what == "insert":
            self._put(who, key, value)
        elif key in self._rows and self._is_free(who, key):
            self._change(who, key, what, value)

    def _change(self, who: int, key: int, what: str, value: Any) -> None:
        body, region, received = self._rows[key]
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
                self._execute(who, delete(self._letters).where(self._at(key)))
                del self._rows[key]
            case "move":
                self._move(who, key, value)

    def _put(self, who: int, key: int, row: Row) -> None:
        if key in self._rows or not self._is_free(who, key):
            return
        self._remember(who, key)
        self._execute(who, insert(self._letters).values(**self.watched.key(key), **_values(row)))
        self._rows[key] = row

    def _set(self, who: int, key: int, row: Row) -> None:
        self._remember(who, key)
        self._execute(who, update(self._letters).where(self._at(key)).values(**_values(row)))
        self._rows[key] = row

    def _move(self, who: int, key: int, to: int) -> None:
        if to in self._rows or not self._is_free(who, to):
            return
        self._remember(who, key)
        self._remember(who, to)
        self._execute(who, update(self._letters).where(self._at(key)).values(**self.watched.key(to)))
        self._rows[to] = self._rows.pop(key)

    def _clear(self, who: int) -> None:
        """TRUNCATE where a trigger tells of it; no other transaction could go on beside it."""
        if any(self._connections):
            return
        is_told = self._engine.dialect.name == "postgresql"
        self._execute(who, text(f"TRUNCATE {self._letters.name}") if is_told else delete(self._letters))
        self._rows.clear()
        self._end(who, commits=True)

    def _end(self, who: int, commits: bool) -> None:
        connection, self._connections[who] = self._connections[who], None
        before, self._before[who] = self._before[who], {}
        if connection is None:
            return
        if commits:
            connection.commit()
        else:
            connection.rollback()
            for key, row in before.items():
                if row is None:
                    self._rows.pop(key, None)
                else:
                    self._rows[key] = row
        connection.close()

    def _execute(self, who: int, statement: Any) -> None:
        connection = self._connections[who]
        if connection is None:
            connection = self._connections[who] = self._engine.connect()
        connection.execute(statement)

    def _is_free(self, who: int, key: int) -> bool:
        return key not in self._before[1 - who]

    def _remember(self, who: int, key: int) -> None:
        self._before[who].setdefault(key, self._rows.get(key))

    def _at(self, key: int) -> Any:
        columns = self.watched.key(key).items()
        return _all_of(self._letters, dict(columns))


def _all_of(letters: Table, key: dict[str, Any]) -> Any:
    first, *others = [letters.c[name] == value for name, value in key.items()]
    for other in others:
        first &= other
    return first


def _values(row: Row) -> dict[str, Any]:
    return dict(zip(("body", "region", "received"), row, strict=True))
