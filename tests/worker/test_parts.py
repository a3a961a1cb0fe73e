"""The parts of a table's worker, each by itself, without a database."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import (
    DatabaseError,
    DedupError,
    ScanRunningError,
    StatementEndedError,
    TooMuchAtOnceError,
)
from db_dedup.jobs.pace import pace_of
from db_dedup.jobs.worker.batch_faults import BatchFaults
from db_dedup.jobs.worker.batch_size import BatchSize
from db_dedup.jobs.worker.driver_errors import translate_driver_error
from db_dedup.jobs.worker.worker_scan import WorkerScan
from db_dedup.store.changes import INSERTED, Change

TAKEN = [Change("1", INSERTED)]


class DriverError(SQLAlchemyError):
    """Any error of the driver."""


def ended(_: SQLAlchemyError) -> DedupError:
    return StatementEndedError("ended")


def dialect(one_writer: bool) -> Any:
    return SimpleNamespace(capabilities=SimpleNamespace(one_writer=one_writer))


def scans(scan: Callable[[], Any]) -> WorkerScan:
    table: Any = SimpleNamespace(name="letters", scan=scan)
    return WorkerScan(table)


def fails(error: Exception) -> Callable[[], Any]:
    def scan() -> Any:
        raise error

    return scan


def test_a_transaction_is_shorter_where_it_blocks_all_other_writers() -> None:
    alone, among_others = pace_of(dialect(True)), pace_of(dialect(False))
    assert alone.seconds < among_others.seconds
    assert alone.gap_seconds > among_others.gap_seconds == 0
    assert pace_of(dialect(True), is_unhurried=True).seconds < alone.seconds
    assert pace_of(dialect(False), is_unhurried=True) == among_others


SLEEPS = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50]
"""Milliseconds that SQLite's own handler sleeps between its first tries; later ones sleep 100 each."""


@given(st.floats(0, 400), st.floats(0, 1))
def test_whoever_waits_with_sqlites_handler_finds_the_gap(locked: float, begins: float) -> None:
    tries = accumulate(chain(SLEEPS, repeat(100)), initial=begins * locked)
    first = next(time for time in tries if time >= locked)
    gap = 1000 * pace_of(dialect(True)).gap_after(locked / 1000)
    assert first < locked + gap


def test_the_gap_is_short_after_a_short_batch() -> None:
    pace = pace_of(dialect(True))
    assert pace.gap_after(0.06) < pace.gap_after(10) == pace.gap_seconds
    assert pace_of(dialect(False)).gap_after(10) == 0


def test_the_first_batch_is_small_where_it_blocks_all_other_writers() -> None:
    alone, among_others = (BatchSize.for_dialect(dialect(one), 2_000) for one in (True, False))
    assert alone.changes < among_others.changes == 2_000


def test_an_error_of_a_row_is_one_of_the_changes() -> None:
    assert BatchFaults(ended).are_of_changes(ValueError(), TAKEN)


@pytest.mark.parametrize("error", [MemoryError(), ValueError()])
def test_an_error_before_any_change_was_taken_is_not_of_the_changes(error: Exception) -> None:
    assert not BatchFaults(ended).are_of_changes(error, ())


def test_too_little_memory_is_remembered() -> None:
    faults = BatchFaults(ended)
    assert not faults.was_too_much
    assert faults.are_of_changes(MemoryError(), TAKEN)
    assert faults.was_too_much


def test_only_the_third_ended_batch_in_a_row_is_an_error_of_the_changes() -> None:
    faults = BatchFaults(ended)
    assert [faults.are_of_changes(DriverError(), TAKEN) for _ in range(3)] == [False, False, True]
    faults.reset()
    assert not faults.are_of_changes(DriverError(), TAKEN)


def test_errors_of_ours_are_not_translated() -> None:
    error = ValueError()
    assert translate_driver_error(error, ended) is error
    assert isinstance(translate_driver_error(MemoryError(), ended), TooMuchAtOnceError)
    assert isinstance(translate_driver_error(DriverError(), ended), StatementEndedError)


def test_while_another_scan_runs_there_is_no_batch() -> None:
    assert scans(fails(ScanRunningError("running"))).run() is None


def test_the_third_scan_in_a_row_that_the_server_ends_is_not_retried() -> None:
    scan = scans(fails(StatementEndedError("ended")))
    for _ in range(2):
        with pytest.raises(StatementEndedError):
            scan.run()
    with pytest.raises(DatabaseError, match="3 scans in a row") as caught:
        scan.run()
    assert not caught.value.is_transient


def test_a_scan_that_finishes_ends_the_row() -> None:
    ended_twice = [fails(StatementEndedError("ended"))] * 2
    outcomes = [*ended_twice, lambda: SimpleNamespace(pairs=0, handled_changes=0), *ended_twice]

    def next_outcome() -> Any:
        return outcomes.pop(0)()

    scan = scans(next_outcome)
    for is_ended in (True, True, False, True, True):
        if is_ended:
            with pytest.raises(StatementEndedError):
                scan.run()
        else:
            batch = scan.run()
            assert batch is not None
            assert batch.is_scan
