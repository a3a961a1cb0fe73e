"""Run a module of this package in a process of its own."""

import sys
from pathlib import Path
from typing import Final

# `-P` leaves out the current folder: a file of the user's may have the name of one of Python's own modules.
# The folder of this package comes last, in case that this process has found it by a path of its own.
_RUN: Final = """\
import sys
from runpy import run_module
sys.path.append(sys.argv.pop())
run_module(sys.argv.pop(), run_name="__main__", alter_sys=True)
"""
_ROOT: Final = Path(__file__).resolve().parents[3]


def can_run_modules() -> bool:
    """Return whether there is a Python to run them; in a frozen program `sys.executable` is the program."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def command_of(module: str) -> list[str]:
    """Return the command that runs a module, given by its full name, as `python -m` does."""
    return [sys.executable, "-P", "-c", _RUN, module, str(_ROOT)]
