"""Plays a history on a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from db_dedup import Deduplicator
from db_dedup.errors import DedupError
from tests.worker.history.interruptions import InterruptedRunError, before_statement, end_session
from tests.worker.history.labels import Labels
from tests.worker.history.migrations import migrate
from tests.worker.history.steps import RECIPES, Interruption, Migration, Step
from tests.worker.history.writers import Writers
from tests.worker.watched import Watched

_ROUNDS: Final = 300
"""More turns than the workers need to handle all that a history queues."""
_COMMAND: Final = re.compile(r"`db-dedup (attach|scan --rebuild|scan)\b")


@dataclass(frozen=True)
class Place:
    """The database that histories are played on.

    Attributes:
        url: of the database.
        writers: engine of the writers.
        administrator: engine of who ends the sessions of others.
        levels: of isolation, beside the usual one.
        one_writer: nobody can write while another transaction is open.
        restart: restarts the server; None where it is not ours to restart.
    """

    url: str
    writers: Engine
    administrator: Engine
    levels: tuple[str, ...] = ()
    one_writer: bool = False
    restart: Callable[[], None] | None = None


class History:
    """Plays steps on a watched table."""

    def __init__(self, watched: Watched, place: Place) -> None:
        self.watched, self._place = watched, place
        self._workers = watched.workers()
        self._writers = Writers(watched, place.writers, place.levels)
        self._labels = Labels(watched, self._writers)
        self._settings = watched.dedup
        self._is_changed = self._is_broken = self._is_cut = False
        self._plays: Mapping[str, Callable[[Step], None]] = {
            "begin": lambda step: self._writers.begin(step.who, *step.value),
            "commit": lambda step: self._writers.end(step.who, commits=True),
            "rollback": lambda step: self._writers.end(step.who, commits=False),
            "clear": lambda step: self._writers.clear(step.who),
            "work": self._work,
            "scan": self._scan,
            "switch": self._switch,
            "say": self._say,
            "migrate": self._migrate,
            "restart": self._restart,
        }

    def play(self, history: list[Step]) -> None:
        """All steps, from an empty table to an empty queue."""
        self._begin_anew()
        try:
            for step in history:
                self._plays.get(step.what, self._write)(step)
            self._writers.end_all(commits=True)
        finally:
            self._writers.end_all(commits=False)
        if self._is_cut and (drift := self._as_stored().verify().drift):
            self._mend(*drift)
        self.drain()
        self._labels.check()

    def drain(self) -> None:
        """Let the workers take turns until nothing is left; where one ends, do what its message says."""
        rounds = 0
        while self._is_busy() or not all(worker.is_drained() for worker in self._workers):
            rounds += 1
            assert rounds < _ROUNDS, "the queue is never empty"

    def _is_busy(self) -> bool:
        try:
            return any([worker.step() for worker in self._workers])  # noqa: C419 - each has its turn
        except (DedupError, SQLAlchemyError) as error:
            if not self._is_expected(error):
                raise
            if not self._translated(error).is_transient:
                self._mend(str(error))
            return True

    def _begin_anew(self) -> None:
        if self._is_changed:
            self.watched.restore()
        self._settings = self.watched.dedup
        self._is_changed = self._is_broken = self._is_cut = False
        self.watched.empty()
        self._writers.forget()
        self._labels.forget()

    def _as_stored(self) -> Deduplicator:
        """The table by the settings that serve."""
        return Deduplicator(self.watched.dedup.database, self.watched.letters.name)

    def _mend(self, *messages: str) -> None:
        """Do what messages say."""
        commands = [command for message in messages for command in _COMMAND.findall(message)]
        assert commands, f"nothing is said that mends it: {messages}"
        for command in commands:
            if command == "attach":
                self._as_stored().attach()
            else:
                self._as_stored().scan(rebuild="--rebuild" in command)

    # Steps

    def _write(self, step: Step) -> None:
        if not (self._place.one_writer and self._writers.is_open(1 - step.who)):
            self._writers.write(step)

    def _work(self, step: Step) -> None:
        if self._must_wait():
            return
        with self._interrupted(step.value):
            self._workers[step.who].step()

    def _scan(self, step: Step) -> None:
        if self._must_wait():
            return
        rebuild, interruption = step.value
        self._is_changed |= interruption is not None
        with self._interrupted(interruption):
            self._settings.scan(rebuild)

    def _switch(self, step: Step) -> None:
        """Scan by other settings. A transaction that stays open meanwhile keeps the triggers as they are."""
        recipe, is_alone, interruption = step.value
        if is_alone or self._place.one_writer:
            self._writers.end_all(commits=True)
        self._is_changed, self._is_broken = True, self._is_broken or self._writers.any_open
        first = self.watched.settings.model_dump(exclude={"name"}, exclude_none=True)
        options = {**first, **RECIPES[recipe]}
        columns = options.pop("columns")
        self._settings = Deduplicator(
            self.watched.dedup.database, self.watched.letters.name, columns, **options
        )
        with self._interrupted(interruption):
            self._settings.scan()
        self._labels.note_recipe()

    def _say(self, step: Step) -> None:
        if self._must_wait():
            return
        other, is_duplicate, interruption = step.value
        with self._interrupted(interruption):
            self._labels.say(step.key, other, is_duplicate)

    def _migrate(self, step: Step) -> None:
        migration: Migration = step.value
        self._writers.end_all(commits=True)
        self._is_changed = True
        # SQLite's driver commits DDL at once, so that a rollback does not bring back view and triggers.
        if migration.end == "killed" or (migration.end == "raised" and self._place.one_writer):
            self._is_cut = self._is_broken = True
        with suppress(InterruptedRunError):
            migrate(self.watched, self._place.url, step.key, migration)
        self._writers.read_all()

    def _restart(self, _: Step) -> None:
        if self._place.restart is None:
            return
        self._is_broken = True
        self._place.restart()
        self._writers.lose_all()
        for worker in self._workers:
            with self._errors_expected():
                worker.step()
        for engine in (self._place.writers, self.watched.dedup.database.engine):
            engine.dispose()

    # Interruptions

    def _must_wait(self) -> bool:
        """A transaction that is open keeps everybody else from writing."""
        return self._place.one_writer and self._writers.any_open

    @contextmanager
    def _interrupted(self, interruption: Interruption | None) -> Iterator[None]:
        """Within it a step comes right before a statement; what it breaks may fail."""
        with self._errors_expected(), suppress(InterruptedRunError), ExitStack() as stack:
            if interruption:
                engine, act = self.watched.dedup.database.engine, partial(self._interrupt, interruption.step)
                stack.enter_context(before_statement(engine, interruption.at, act))
            yield

    def _interrupt(self, step: Step, connection: Connection) -> None:
        if step.what == "raise":
            self._is_broken = True
            raise InterruptedRunError
        if self._place.one_writer:
            return
        if step.what == "kill":
            self._is_broken = True
            end_session(connection, self._place.administrator)
        else:
            self._plays[step.what](step)

    @contextmanager
    def _errors_expected(self) -> Iterator[None]:
        """Within it, errors are let pass that come of what was broken on purpose."""
        try:
            yield
        except (DedupError, SQLAlchemyError) as error:
            if not self._is_expected(error):
                raise

    def _is_expected(self, error: DedupError | SQLAlchemyError) -> bool:
        """After something was broken on purpose, an error may pass by itself, or name what mends it."""
        told = self._translated(error)
        return self._is_broken and (told.is_transient or bool(_COMMAND.search(str(told))))

    def _translated(self, error: DedupError | SQLAlchemyError) -> DedupError:
        dialect = self.watched.dedup.database.dialect
        return dialect.translate_error(error) if isinstance(error, SQLAlchemyError) else error
