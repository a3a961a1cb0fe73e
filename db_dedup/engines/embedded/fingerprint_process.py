"""Fingerprint pages in processes of their own: several pages at a time, while others are read and written.

In a single process they wait for each other, since most of the segmenting holds the interpreter's lock. Each
process runs this module. It reads pages from its standard input and writes the results to its standard
output. It ends when either of them is closed.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from queue import SimpleQueue
from types import TracebackType
from typing import IO, Final, Self

from db_dedup.engines.embedded.own_process import command_of
from db_dedup.errors import DedupError
from db_dedup.flow.features.counting import NO_FEATURES
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.flow.threads import starting_threads
from db_dedup.light_imports import leave_out_blas
from db_dedup.records.frames import FrameList
from db_dedup.records.recipe import Recipe

# Windows raises a plain OSError where the process at the other end has ended.
_PIPE_CLOSED: Final = (BrokenPipeError,) if sys.platform != "win32" else (OSError,)

_ALLOCATIONS: Final = 100_000
"""After so many, Python searches for cyclic garbage in a fingerprinting process."""

_SECONDS_TO_END: Final = 5.0
"""How long to wait for the end of a process whose pipe is closed."""


class FingerprintProcess:
    """Does the work of a `Fingerprinter` in another process, one page at a time."""

    def __init__(self, recipe: Recipe, *, keep_weights: bool = True) -> None:
        """Start the process; without `keep_weights` it leaves out the weights of features in its answers."""
        with _signals_held_back(), starting_threads():
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
                command_of(__spec__.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                # The same on Windows as a session of its own elsewhere: Ctrl-C does not reach the process.
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._questions: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout
        with suppress(*_PIPE_CLOSED):  # the first `fingerprint` raises an error if the process has ended
            self._send((recipe, keep_weights))

    def leave_out(self, frames: FrameList) -> None:
        """Leave these frames out of all texts that follow."""
        with suppress(*_PIPE_CLOSED):  # as above
            self._send(frames)

    def fingerprint(
        self,
        rows: Sequence[Sequence[str]],
        within: Sequence[str | None] | None = None,
        known: Sequence[bytes | None] | None = None,
        *,
        compares_known: bool = False,
    ) -> FingerprintedRows:
        """Run steps 2 to 4; arguments and result are those of `Fingerprinter.fingerprint`.

        Raises:
            ConfigError: the fingerprinter of the process raised it.
            DedupError: the process has ended.
        """
        try:
            with suppress(*_PIPE_CLOSED):  # it may have sent an error before it ended
                self._send((rows, within, known, compares_known))
            answer = pickle.load(self._answers)  # noqa: S301 - our own process wrote it
        except (EOFError, pickle.UnpicklingError):  # it may have ended in the middle of an answer
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_END)
            self._process.kill()  # if it still runs, it has sent something else than an answer
            raise DedupError(
                "the fingerprinting process ended with code {exit_code}", exit_code=self._process.wait()
            ) from None
        if isinstance(answer, DedupError):
            raise answer
        assert isinstance(answer, FingerprintedRows)  # noqa: S101 - nothing else is sent
        return answer

    def _send(self, question: object) -> None:
        pickle.dump(question, self._questions, pickle.HIGHEST_PROTOCOL)
        self._questions.flush()

    def __enter__(self) -> Self:
        """Return the same object; its process has run since it was made."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the process, even in the middle of a page."""
        self._process.kill()
        self._process.wait()
        self._answers.close()
        with suppress(*_PIPE_CLOSED):  # part of a page was still to be sent
            self._questions.close()


class FingerprintProcesses:
    """Does the work of a `Fingerprinter` in several processes; threads may share it.

    Attributes:
        count: how many there are, and so how many pages are fingerprinted at a time.
    """

    def __init__(self, recipe: Recipe, count: int, *, keep_weights: bool = True) -> None:
        """Start the processes; for `keep_weights` see `FingerprintProcess`."""
        self.count = count
        self._idle: SimpleQueue[FingerprintProcess] = SimpleQueue()
        with ExitStack() as resources:
            for _ in range(count):
                self._idle.put(resources.enter_context(FingerprintProcess(recipe, keep_weights=keep_weights)))
            self._resources = resources.pop_all()

    def leave_out(self, frames: FrameList) -> None:
        """Leave these frames out of all texts that follow; no page is being fingerprinted."""
        for _ in range(self.count):
            process = self._idle.get()
            process.leave_out(frames)
            self._idle.put(process)

    def fingerprint(
        self,
        rows: Sequence[Sequence[str]],
        within: Sequence[str | None] | None = None,
        known: Sequence[bytes | None] | None = None,
        *,
        compares_known: bool = False,
    ) -> FingerprintedRows:
        """Run steps 2 to 4 in a process that is idle; wait for one if there is none.

        Raises:
            ConfigError: the fingerprinter of the process raised it.
            DedupError: the process has ended.
        """
        process = self._idle.get()
        try:
            return process.fingerprint(rows, within, known, compares_known=compares_known)
        finally:
            self._idle.put(process)

    def end(self) -> None:
        """Kill the processes: nothing more is to be fingerprinted."""
        self._resources.close()

    def __enter__(self) -> Self:
        """Return the same object; the processes have run since it was made."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the processes, even in the middle of a page."""
        self.end()


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Block the signals that stop a scan in a process that is started in the block.

    A service manager sends them to all processes of a service. The scan handles them, and ends this process.
    """
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
    """Answer each question until there are no more."""
    try:
        recipe: Recipe
        recipe, keep_weights = pickle.load(questions)  # noqa: S301 - the process that started us wrote it
        fingerprinter = Fingerprinter(recipe)
        # All is loaded before the first page comes, also the dictionary: its rows are still being read.
        fingerprinter.fingerprint([["字"] * len(recipe.columns)])
        # A page has ten thousand rows. Searches for cyclic garbage among them, and among all that is loaded,
        # took a tenth of the time; no cycles are made.
        gc.freeze()
        gc.set_threshold(_ALLOCATIONS)
        while True:
            question = pickle.load(questions)  # noqa: S301
            if isinstance(question, FrameList):
                fingerprinter.leave_out(question)
                continue
            *rows, compares_known = question
            done = fingerprinter.fingerprint(*rows, compares_known=compares_known)
            _give(done if keep_weights else _without_weights(done), answers)
    except (EOFError, pickle.UnpicklingError):  # the scan has ended, perhaps in the middle of a question
        return
    except DedupError as error:
        _give(error, answers)


def _without_weights(done: FingerprintedRows) -> FingerprintedRows:
    """Leave out the weights of features: they are two fifths of an answer, and only the cosine needs them."""
    return replace(done, features=replace(done.features, weights=NO_FEATURES.weights))


def _give(answer: object, answers: IO[bytes]) -> None:
    pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
    answers.flush()


def take_stdout() -> IO[bytes]:
    """Return the stdout that answers are written to; what a segmenter prints goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    leave_out_blas()
    try:
        serve(sys.stdin.buffer, take_stdout())
    except _PIPE_CLOSED:
        os._exit(1)  # the scan has ended: no process reads an answer or an error
