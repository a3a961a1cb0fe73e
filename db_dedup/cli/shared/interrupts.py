"""What SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal) do to a command.

While the command loads, they end the process at once. While it runs, they raise KeyboardInterrupt, so that a
scan can release its table. While it exits, they end the process without a message. A command that finishes
its work first handles the signals itself (`stop_event`). A second signal ends the process at once: what the
first one began may wait for a server that no longer answers.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn

SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
NOTHING_WRITTEN: Final = "nothing was written"
_SIGNALLED: Final = 128
"""What a shell adds to a signal's number to make an exit code of it."""
_AGAIN_SECONDS: Final = 0.01
_SAME_SECONDS: Final = 1.0
"""Signals in so many seconds count as one: GNU timeout sends its signal to the child and to the group."""

Handler = Callable[[int, FrameType | None], Any] | signal.Handlers


class Interrupted(KeyboardInterrupt):
    """This process received a signal to stop."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


class _Repetition:
    """Recognises a second signal, which ends the process."""

    def __init__(self) -> None:
        self._first: float | None = None

    def note(self, number: int) -> None:
        """Note a signal; end the process if it is not the first one."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
        elif now - self._first > _SAME_SECONDS:
            leave_at_once(number, None)


class _State:
    """Which signal this process has received, and whether a line has reported it."""

    received: signal.Signals | None = None
    is_reported = False
    repetition = _Repetition()


def answer_with(handler: Handler) -> None:
    """Let the signals do this from now on. One that is ignored stays so, as under `nohup`."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def leave_at_once(number: int, _: FrameType | None) -> NoReturn:
    """End the process: an import could catch an exception raised in it, and a clean-up could wait."""
    with suppress(OSError):
        os.write(2, b"stopped\n")
    os._exit(_SIGNALLED + number)


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """End the process at a signal until the block ends, where outside it the signal raises an exception."""
    changed = [number for number in SIGNALS if signal.getsignal(number) is interrupt]
    for number in changed:
        signal.signal(number, leave_at_once)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, interrupt)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt in the main thread; if numba's code is running there, send the signal again.

    The wrapper of a kernel calls Python functions of numba and expects no exception of a signal from them:
    Python would raise a SystemError instead.
    """
    if _is_in_numba(frame):
        _signal_again(number)
        return
    _State.repetition.note(number)
    _State.received = signal.Signals(number)
    raise Interrupted(_State.received)


def _is_in_numba(frame: FrameType | None) -> bool:
    """Return whether the innermost frame of numba or db_dedup is numba's."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in ("numba", "db_dedup"):
            return package == "numba"
        frame = frame.f_back
    return False


def leave(run: Callable[[], None]) -> NoReturn:
    """Run something and end the process, with one line if a signal stopped it."""
    sys.unraisablehook = _interrupt_again
    code: Any = 0
    try:
        run()
    except SystemExit as error:
        code = error.code
    except KeyboardInterrupt:
        code = _SIGNALLED + signal.SIGINT
    answer_with(signal.SIG_DFL)
    if _State.received is not None:
        code = _SIGNALLED + _State.received
        if not _State.is_reported:
            report_stop()
    sys.exit(code)


def report_stop(consequence: str = "") -> None:
    """Write one line: the command was stopped, and what that means."""
    from db_dedup.translation import tr  # noqa: PLC0415 - signals are answered before anything is loaded

    _State.is_reported = True
    line = tr("stopped: {consequence}", consequence=tr(consequence)) if consequence else tr("stopped")
    with suppress(OSError):  # the terminal may be gone
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


@contextmanager
def interruption_first() -> Iterator[None]:
    """Raise the interruption of the block where a clean-up failed after it, and replaced it by its error.

    A driver refuses much in a session whose statement was cut short.
    """
    try:
        yield
    except Exception as error:
        if _State.received is None:
            raise
        raise Interrupted(_State.received) from error


@contextmanager
def report_when_stopped(consequence: str) -> Iterator[None]:
    """Report what an interruption of the block means."""
    try:
        with interruption_first():
            yield
    except KeyboardInterrupt:
        report_stop(consequence)
        raise


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Yield an event that the signals set until the block ends, for commands that finish their work first."""
    stop = threading.Event()
    repetition = _Repetition()

    def finish(number: int, _: FrameType | None) -> None:
        repetition.note(number)
        stop.set()

    before = {number: signal.getsignal(number) for number in SIGNALS}
    answer_with(finish)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """A signal that arrived while some object was deleted was lost with what it raised there: raise it once
    more, as soon as this is over."""
    error = unraisable.exc_value
    if isinstance(error, Interrupted):
        _signal_again(error.number)
    else:
        sys.__unraisablehook__(unraisable)


def _signal_again(number: int) -> None:
    threading.Timer(_AGAIN_SECONDS, _send_to_ourselves, [number]).start()


def _send_to_ourselves(number: int) -> None:
    if sys.platform == "win32":  # there os.kill would end the process at once
        signal.raise_signal(number)
    else:
        os.kill(os.getpid(), number)  # also interrupts a system call for which the main thread waits
