"""Incremental processing: handle the queued changes of some tables, one table after another."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import DedupError, FaultyTablesError, ReadOnlyDatabaseError
from db_dedup.jobs.stopping import StoppedError
from db_dedup.jobs.worker.driver_errors import translate_driver_error
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.jobs.worker.worker_table import Batch

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 30.0

OnFault = Callable[[str, DedupError | None], None]
"""Takes a table's name and the error that stops its changes from being handled; None once they are handled
again."""


def log_fault(name: str, fault: DedupError | None) -> None:
    """Log the error that stops a table's changes from being handled."""
    if fault is None:
        logger.warning("%s: works again", name)
    else:
        logger.warning("%s: %s; trying again", name, fault)


class _WorkedTable(Protocol):
    """A table whose changes can be handled."""

    @property
    def name(self) -> str: ...

    @property
    def gap_seconds(self) -> float: ...

    def step(self) -> Batch | None: ...

    def is_drained(self) -> bool: ...

    def translate_error(self, error: SQLAlchemyError) -> DedupError: ...

    def forget(self) -> None: ...


class LateTable:
    """A table whose worker is made when it is first needed, and again after a fault.

    So a program can start before its database, and a table can be repaired while the program runs.
    """

    def __init__(self, name: str, open_worker: Callable[[], AbstractContextManager[TableWorker]]) -> None:
        self.name, self._open_worker = name, open_worker
        self._resources = ExitStack()
        self._worker: TableWorker | None = None

    @property
    def gap_seconds(self) -> float:
        """Return what `TableWorker.gap_seconds` is."""
        return 0.0 if self._worker is None else self._worker.gap_seconds

    def step(self) -> Batch | None:
        """Do what `TableWorker.step` does."""
        return self._opened().step()

    def is_drained(self) -> bool:
        """Return what `TableWorker.is_drained` returns."""
        return self._opened().is_drained()

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """Return a driver's error in the words of its dialect."""
        return self._opened().translate_error(error)

    def forget(self) -> None:
        """Close the worker; the next step makes another."""
        self._worker = None
        self._resources.close()

    def _opened(self) -> TableWorker:
        if self._worker is None:
            self._worker = self._resources.enter_context(self._open_worker())
        return self._worker


@dataclass
class _Turn:
    """A table, and when its next step may begin.

    Attributes:
        fault: the error of its last step.
        due: time of the monotonic clock before which no step begins.
        pause: seconds to wait after the next error.
    """

    table: _WorkedTable
    fault: DedupError | None = None
    due: float = 0.0
    pause: float = _FIRST_PAUSE_SECONDS

    @property
    def is_stopped(self) -> bool:
        """Whether a retry cannot help."""
        return self.fault is not None and not self.fault.is_transient


class ChangeWorker:
    """Handles the changes of several tables, one batch of each after another."""

    def __init__(
        self,
        tables: Sequence[_WorkedTable],
        poll_seconds: float = 0.5,
        on_batch: Callable[[Batch], None] = lambda _: None,
        on_fault: OnFault = log_fault,
    ) -> None:
        """Prepare; nothing is asked of the database yet.

        Args:
            tables: whose changes to handle.
            poll_seconds: how long to wait where no change is queued.
            on_batch: called after each batch.
            on_fault: called when the changes of a table can no longer be handled, when the reason changes,
                and when they can be handled again.
        """
        self._turns = [_Turn(table) for table in tables]
        self._poll_seconds, self._on_batch, self._on_fault = poll_seconds, on_batch, on_fault

    def run(self, stop: threading.Event, *, drain: bool = False) -> None:
        """Work until `stop` is set; with `drain`, until all tables are drained.

        A running batch is finished first. A table whose step fails is tried again after longer and longer
        pauses; the others go on.

        Raises:
            DedupError: all tables fail, and no retry helps; with `drain`, some table fails.
        """
        while not stop.is_set():
            is_busy = self._work_once(stop)
            if all(turn.is_stopped for turn in self._turns):
                self._raise_faults()
            if drain and not is_busy and all(map(self._is_done, self._turns)):
                self._raise_faults()
                return
            if not is_busy:
                stop.wait(self._seconds_to_wait())

    def _work_once(self, stop: threading.Event) -> bool:
        """Handle one batch of every table; return whether there was any."""
        is_busy = False
        for turn in self._turns:
            if stop.is_set() or time.monotonic() < turn.due:
                continue
            batch = self._try(turn, turn.table.step)
            if batch is not None:
                self._on_batch(batch)
                is_busy = True
                stop.wait(turn.table.gap_seconds)
        return is_busy

    def _try(self, turn: _Turn, work: Callable[[], _Result]) -> _Result | None:
        """Return what the work returns; None where it fails, and the error is noted."""
        started = time.monotonic()
        try:
            result = work()
        except StoppedError:
            return None
        except (DedupError, SQLAlchemyError, MemoryError) as error:
            fault = translate_driver_error(error, turn.table.translate_error)
            self._note_fault(turn, fault, time.monotonic() - started)
            return None
        if turn.fault is not None:
            self._on_fault(turn.table.name, None)
            turn.fault = None
        turn.pause = _FIRST_PAUSE_SECONDS
        return result

    def _note_fault(self, turn: _Turn, fault: DedupError, seconds: float) -> None:
        is_news = str(turn.fault) != str(fault)
        turn.fault = fault
        if not fault.is_transient or isinstance(fault, ReadOnlyDatabaseError):
            turn.table.forget()  # also its sessions, each of which may stay read-only
        # A step that takes long to fail, such as a scan, uses the server for half of the time at most.
        turn.due = time.monotonic() + max(turn.pause, seconds)
        turn.pause = min(2 * turn.pause, _LONGEST_PAUSE_SECONDS)
        if is_news and not all(other.is_stopped for other in self._turns):
            self._on_fault(turn.table.name, fault)

    def _is_done(self, turn: _Turn) -> bool:
        if turn.fault is not None:
            return turn.is_stopped
        return bool(self._try(turn, turn.table.is_drained))

    def _seconds_to_wait(self) -> float:
        """Return the seconds until the next look at the queues, or at a table that has just failed."""
        now = time.monotonic()
        return min(
            self._poll_seconds if turn.fault is None else max(0.0, turn.due - now) for turn in self._turns
        )

    def _raise_faults(self) -> None:
        faults = {turn.table.name: turn.fault for turn in self._turns if turn.fault is not None}
        if faults:
            raise common_fault(faults, of=len(self._turns))


def common_fault(faults: Mapping[str, DedupError], of: int) -> DedupError:
    """Return what to raise for the errors of some of so many tables: that of all, if all have the same."""
    first = next(iter(faults.values()))
    is_of_all = len(faults) == of and len(set(map(str, faults.values()))) == 1
    return first if is_of_all else FaultyTablesError(faults)
