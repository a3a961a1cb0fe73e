"""A command that runs until it is told to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SECONDS = 60
"""After so long a process that should have ended is taken for stuck."""


@dataclass(frozen=True)
class Background:
    process: subprocess.Popen[str]

    def line(self) -> str:
        """What it says next."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def rest(self) -> str:
        """What it has said since."""
        assert self.process.stderr is not None
        return self.process.stderr.read()


@contextmanager
def background(*arguments: str) -> Iterator[Background]:
    """`db-dedup` with these arguments, gone at the end of the block whatever happened."""
    command = (sys.executable, "-m", "db_dedup.cli", *arguments)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Background(process)
        finally:
            process.kill()
