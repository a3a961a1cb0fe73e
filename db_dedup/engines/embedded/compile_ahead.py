"""Compile the kernels of the matching in a process of its own, while the rows are fingerprinted.

The first scan after an installation compiles for some eighteen seconds of a processor: the kernels of the
fingerprints, then those of the matching. numba compiles one kernel at a time in a process. So a second
process, which runs this module, matches two made-up rows. It leaves the kernels on the disk, where this
process finds them.
"""

import subprocess
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import numpy as np

from db_dedup.engines.embedded.own_process import can_run_modules, command_of
from db_dedup.flow.candidates.segments import pack, sorted_entries
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.kernels import is_rule_missing
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import SECTIONS, Details
from db_dedup.flow.matching.match import match_table
from db_dedup.flow.usable_cores import usable_cores
from db_dedup.light_imports import leave_out_blas
from db_dedup.progress import NullProgress, report_compiling
from db_dedup.records.calibration import PairSetting

_LONGEST_WAIT: Final = 120.0
"""Seconds: many times what the process takes. After them this process compiles on its own."""


class CompilingAhead:
    """A process that compiles the kernels of the matching, if they are not compiled and a core is free."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if can_run_modules() and usable_cores() > 1 and is_rule_missing():
            report_compiling(is_kept=True)
            with suppress(OSError):  # no more processes are allowed: this one compiles what it needs
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
                    command_of(__spec__.name),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )

    def wait(self) -> None:
        """Wait until the kernels are compiled. If the process fails, this process compiles what it needs.

        Meanwhile compile what comes after the matching.
        """
        if self._process is not None:
            pack_two_rows()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LONGEST_WAIT)

    def __enter__(self) -> Self:
        """Return the same object; its process has run since it was made."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the process: what it has compiled by then stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


_NUMBERS: Final = np.arange(2)
_SKETCHES: Final = Sketches(np.arange(3), np.zeros(2, np.uint64))


def match_two_rows() -> None:
    """Match two equal rows, so that numba compiles the kernels of the matching."""
    rows = ComparedRows(
        fingerprints=np.zeros(2, np.uint64),
        has_fingerprint=np.ones(2, np.bool_),
        digests=np.arange(1, 5, dtype=np.uint64).reshape(2, 2),
        within=np.zeros(2, np.int32),
        features=Features(_SKETCHES.starts, _SKETCHES.values, np.ones(2, np.int64)),
        details=Details(np.zeros(2 * SECTIONS + 1, np.int64), np.empty(0, np.uint64)),
        places=_NUMBERS,
        sketches=_SKETCHES,
        sketch_places=_NUMBERS,
    )
    match_table(rows, Rule(PairSetting(3, True, next(iter(MEASURES)), 0.5)), 100, NullProgress())


def pack_two_rows() -> None:
    """Pack the sketches of two rows as they are stored, for the same reason."""
    for entries in sorted_entries(_SKETCHES, _NUMBERS, _NUMBERS, 1):
        list(pack(entries, 1))


if __name__ == "__main__":
    leave_out_blas()
    match_two_rows()
