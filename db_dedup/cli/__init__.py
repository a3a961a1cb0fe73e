"""The command line: a file per command. Data goes to stdout, messages and progress bars to stderr.

Exit codes: 0 done, 1 failed or differs, 2 wrong usage, 128 and the signal's number where a signal ended it.

Importing this package loads next to nothing: signals must be answered before the seconds that numba,
SQLAlchemy and jieba take to load.
"""

import atexit
import gc
import os
from typing import Final

from db_dedup.cli.shared import interrupts

_ALLOCATIONS: Final = 20_000
"""Between two searches for cyclic garbage. With Python's 700, what is imported is searched again and again,
which takes a tenth of the time of a short command (`start` of the benchmarks)."""


def main() -> None:
    """Run the command line as the one thing that this process does."""
    interrupts.answer_with(interrupts.leave_at_once)
    gc.set_threshold(_ALLOCATIONS)
    # Python searches all that is left for cyclic garbage before the process ends: a fifth of a short command.
    atexit.register(gc.freeze)
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)  # nothing could be printed in 0 columns
    from db_dedup.cli.application import run  # noqa: PLC0415 - see above

    interrupts.answer_with(interrupts.interrupt)
    interrupts.leave(run)
