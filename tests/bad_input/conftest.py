"""What every test of bad input asks: was it one clear line, and does all stand as it stood?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, inspect

from db_dedup import Deduplicator
from db_dedup.errors import DedupError
from db_dedup.store.source import Source
from tests.cli.conftest import folder, petitions, sample, sqlite_petitions
from tests.scan.conftest import answer
from tests.servers import Database

__all__ = ["Watcher", "folder", "petitions", "sample", "sqlite_petitions"]

SAME = "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请尽快处理。"
NEAR = "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请赶快处理。"
OTHER = "公交站台的顶棚坏了半年，下雨天老人孩子没有地方躲雨，希望有关部门来修。"


class Watcher:
    """A progress that acts when a scan reaches a step, so that a test is in the middle of it."""

    def __init__(self, act: Callable[[], object], step: str = "fingerprints", after: int = 0) -> None:
        """Call `act` once `after` rows of `step` are done; at its very start where that is 0."""
        self._act, self._step, self._after = act, step, after
        self._at = ""
        self._done = 0

    def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
        self._at, self._done = step, 0
        self._look()

    def advance(self, amount: int) -> None:
        self._done += amount
        self._look()

    def finish(self) -> None:
        self._at = ""

    def _look(self) -> None:
        if self._at == self._step and self._done >= self._after:
            self._step = ""  # once is enough
            self._act()

    @property
    def has_acted(self) -> bool:
        return not self._step


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan reads ten rows at a time, so that a small table has a middle."""
    pages = Source.pages
    monkeypatch.setattr(Source, "pages", lambda source, engine: pages(source, engine, 10))


def watch(database: Database, **options: Any) -> Deduplicator:
    """The table of petitions, with our tables made, not scanned yet."""
    dedup = Deduplicator(database.engine, "petitions", {"body": 1}, **options)
    dedup.upgrade()
    return dedup


def stored_rows(engine: Engine, table: str = "petitions") -> tuple[list[Any], list[tuple[Any, ...]]]:
    """The definition and the content of a table of the user's."""
    with engine.connect() as connection:
        columns = [(c["name"], str(c["type"])) for c in inspect(connection).get_columns(table)]
        quoted = engine.dialect.identifier_preparer.quote_identifier(table)
        rows = sorted(map(tuple, connection.exec_driver_sql(f"SELECT * FROM {quoted}")), key=repr)
    return columns, rows


@contextmanager
def unharmed(database: Database, dedup: Deduplicator | None = None) -> Iterator[None]:
    """Afterwards the user's table is what it was, and so is the answer of the last complete scan."""
    rows = stored_rows(database.engine)
    told = answer(dedup) if dedup else None
    yield
    assert stored_rows(database.engine) == rows
    if dedup:
        assert answer(dedup) == told


def outcome(action: Callable[[], object]) -> DedupError | None:
    """The error that an action ends in, if it does."""
    try:
        action()
    except DedupError as error:
        return error
    return None


def refusal(action: Callable[[], object], kind: type[DedupError] = DedupError) -> str:
    """The one line that an action ends in."""
    with pytest.raises(kind) as caught:
        action()
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    return line
