"""Fingerprints pages in a process of its own, so that segmenting and the database's work go on at once.

In one process they do not: all but the inside of a cut happens under the interpreter's lock. The process runs
this very module, reads pages from its standard input, answers on its standard output, and ends with either.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, Self

from db_dedup.config import WatchedTable
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter
from db_dedup.errors import DedupError


class FingerprintProcess:
    """Does what a `Fingerprinter` does, elsewhere; one page at a time."""

    def __init__(self, watched: WatchedTable) -> None:
        with _signals_held_back():
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
                [sys.executable, "-m", __spec__.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                # What a session of its own is on Windows: Ctrl-C does not reach it.
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._questions: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout
        with suppress(BrokenPipeError):  # the first answer says that it has ended
            self._send(watched.model_dump_json(by_alias=True))

    def fingerprint(
        self,
        rows: Sequence[Sequence[str]],
        within: Sequence[str | None] | None = None,
        known: Sequence[bytes | None] | None = None,
        *,
        compares_known: bool = False,
    ) -> FingerprintedRows:
        """As `Fingerprinter.fingerprint`.

        Raises:
            ConfigError: as the fingerprinter's own.
            DedupError: the process has ended.
        """
        try:
            with suppress(BrokenPipeError):  # it may have said why before it ended
                self._send((rows, within, known, compares_known))
            answer = pickle.load(self._answers)  # noqa: S301 - our own process wrote it
        except (EOFError, pickle.UnpicklingError):  # it may have ended in the middle of an answer
            raise DedupError(f"the fingerprinting process ended with code {self._process.wait()}") from None
        if isinstance(answer, DedupError):
            raise answer
        assert isinstance(answer, FingerprintedRows)  # noqa: S101 - nothing else is sent
        return answer

    def _send(self, question: object) -> None:
        pickle.dump(question, self._questions, pickle.HIGHEST_PROTOCOL)
        self._questions.flush()

    def __enter__(self) -> Self:
        """The process is at work from the start."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, whatever it is at."""
        self._process.kill()
        self._process.wait()
        self._answers.close()
        with suppress(BrokenPipeError):  # a page was on its way
            self._questions.close()


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Keep the signals that stop a scan from a process that is started in the block: whoever sends them to
    all processes of a service means the scan, which ends that process."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the questions end."""
    try:
        fingerprinter = Fingerprinter(WatchedTable.model_validate_json(pickle.load(questions)))  # noqa: S301
        while True:
            *rows, compares_known = pickle.load(questions)  # noqa: S301 - the process that started us wrote it
            _give(fingerprinter.fingerprint(*rows, compares_known=compares_known), answers)
    except (EOFError, pickle.UnpicklingError):  # whoever asked is gone, maybe in the middle of a question
        return
    except DedupError as error:
        _give(error, answers)


def _give(answer: object, answers: IO[bytes]) -> None:
    pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
    answers.flush()


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(1)  # nobody is left to answer, or to complain to
