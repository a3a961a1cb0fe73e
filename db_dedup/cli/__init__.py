"""The command line: a file per command. Data goes to stdout, messages and progress bars to stderr.

Exit codes: 0 done, 1 failed or differs, 2 wrong usage, 128 and the signal's number where a signal ended it.

Importing this package loads next to nothing: signals must be answered before the seconds that numba,
SQLAlchemy and jieba take to load.
"""

from db_dedup.cli.shared import interrupts


def main() -> None:
    """Run the command line as the one thing that this process does."""
    interrupts.answer_with(interrupts.leave_at_once)
    from db_dedup.cli.application import run  # noqa: PLC0415 - see above

    interrupts.answer_with(interrupts.interrupt)
    interrupts.leave(run)
