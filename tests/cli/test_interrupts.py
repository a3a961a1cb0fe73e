"""Signals to a command that is loading, running, ending, or started so that it ignores them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.servers import Database

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROLOGUE = """
import os, signal, sys
def send(number):
    os.kill(os.getpid(), number)
"""


def run_python(program: str, *arguments: str) -> tuple[int, str]:
    """Exit code and stderr of a program in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE + textwrap.dedent(program), *arguments],
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("typer", signal.SIGINT),
        ("numpy", signal.SIGTERM),
        ("numba", signal.SIGINT),
        ("sqlalchemy", signal.SIGHUP),
        ("db_dedup.cli.status", signal.SIGINT),
    ],
)
def test_while_it_loads(module: str, number: signal.Signals) -> None:
    """In the middle of any import."""
    program = """
        module, number = sys.argv.pop(1), int(sys.argv.pop(1))
        class Watching:
            def find_spec(self, name, path, target=None):
                if name == module:
                    send(number)
        sys.meta_path.insert(0, Watching())
        from db_dedup.cli import main
        assert "numpy" not in sys.modules and "sqlalchemy" not in sys.modules
        main()
    """
    assert run_python(program, module, str(int(number)), "status") == (128 + number, "stopped\n")


@pytest.mark.parametrize(
    ("command", "number", "said"),
    [
        (["verify", "petitions"], signal.SIGTERM, "stopped: nothing was written\n"),
        (["calibrate", "petitions"], signal.SIGINT, "stopped: nothing was written\n"),
        (["compare", "petitions"], signal.SIGINT, "stopped: nothing was written\n"),
        (["scan", "petitions", "--preview"], signal.SIGHUP, "stopped: nothing was written\n"),
        (["upgrade"], signal.SIGTERM, "stopped\n"),
        (["uninstall", "--yes"], signal.SIGINT, "stopped\n"),
        (["pairs", "petitions"], signal.SIGHUP, "stopped\n"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_while_it_runs(scanned: Database, command: list[str], said: str, number: signal.Signals) -> None:
    """At its first look at the database."""
    assert scanned.name == "sqlite"
    program = """
        from sqlalchemy import Engine, event
        number = int(sys.argv.pop())
        @event.listens_for(Engine, "before_cursor_execute", once=True)
        def stop(*_):
            send(number)
        from db_dedup.cli import main
        main()
    """
    assert run_python(program, *command, str(int(number))) == (128 + number, said)


@pytest.mark.parametrize(
    ("command", "said"),
    [("verify", "stopped: nothing was written\n"), ("pairs", "stopped\n")],
)
@pytest.mark.parametrize("error", ["DatabaseError('refused')", "ProgrammingError('', {}, Exception())"])
def test_a_clean_up_that_fails_after_it(scanned: Database, command: str, said: str, error: str) -> None:
    """The driver may refuse to reset a session whose statement was cut short."""
    program = """
        from sqlalchemy import Engine, event
        from sqlalchemy.exc import ProgrammingError
        from db_dedup.errors import DatabaseError
        error = sys.argv.pop()
        @event.listens_for(Engine, "before_cursor_execute", once=True)
        def stop(*_):
            try:
                send(signal.SIGTERM)
            finally:
                raise eval(error)
        from db_dedup.cli import main
        main()
    """
    assert scanned.name == "sqlite"
    assert run_python(program, command, "petitions", error) == (128 + signal.SIGTERM, said)


@pytest.mark.parametrize("number", SIGNALS)
def test_while_something_is_deleted(number: signal.Signals) -> None:
    """What is raised there is lost; the command stops all the same."""
    program = """
        from db_dedup.cli.shared import interrupts
        class Deleted:
            def __del__(self):
                send(int(sys.argv[1]))
        def run():
            Deleted()
            while True:
                signal.pause()
        interrupts.answer_with(interrupts.interrupt)
        interrupts.leave(run)
    """
    assert run_python(program, str(int(number))) == (128 + number, "stopped\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_while_numba_is_at_work(number: signal.Signals) -> None:
    """Compiled code calls it, which expects no exception of a signal."""
    program = """
        from db_dedup.cli.shared import interrupts
        numba = {"__name__": "numba.core.serialize", "send": send, "number": int(sys.argv[1]), "sys": sys}
        exec("def load(): send(number); print('loaded', file=sys.stderr)", numba)
        def run():
            numba["load"]()
            while True:
                signal.pause()
        interrupts.answer_with(interrupts.interrupt)
        interrupts.leave(run)
    """
    assert run_python(program, str(int(number))) == (128 + number, "loaded\nstopped\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_while_it_ends(number: signal.Signals) -> None:
    program = """
        import atexit
        atexit.register(lambda: send(int(sys.argv[1])))
        from db_dedup.cli.shared import interrupts
        interrupts.answer_with(interrupts.interrupt)
        interrupts.leave(lambda: None)
    """
    assert run_python(program, str(int(number))) == (-number, "")


@pytest.mark.parametrize("number", SIGNALS)
def test_one_that_is_ignored_stays_so(number: signal.Signals) -> None:
    """As under nohup."""
    program = """
        from db_dedup.cli.shared import interrupts
        signal.signal(int(sys.argv[1]), signal.SIG_IGN)
        def run():
            send(int(sys.argv[1]))
            with interrupts.stop_event() as stop:
                send(int(sys.argv[1]))
                assert not stop.is_set()
        interrupts.answer_with(interrupts.interrupt)
        interrupts.leave(run)
    """
    assert run_python(program, str(int(number))) == (0, "")


WORK_FIRST = """
    import math
    from db_dedup.cli.shared import interrupts
    interrupts._SAME_SECONDS = -1 if sys.argv[2] == "later" else math.inf
    def run():
        with interrupts.stop_event() as stop:
            send(int(sys.argv[1]))
            assert stop.is_set()
            send(int(sys.argv[1]))
            print("went on", file=sys.stderr)
    interrupts.answer_with(interrupts.interrupt)
    interrupts.leave(run)
"""

CLEAN_UP = """
    import math
    from db_dedup.cli.shared import interrupts
    interrupts._SAME_SECONDS = -1 if sys.argv[2] == "later" else math.inf
    def run():
        try:
            send(int(sys.argv[1]))
        finally:
            try:
                send(int(sys.argv[1]))
            except KeyboardInterrupt:
                print("went on", file=sys.stderr)
    interrupts.answer_with(interrupts.interrupt)
    interrupts.leave(run)
"""


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("program", [WORK_FIRST, CLEAN_UP], ids=["work", "clean-up"])
def test_a_second_one_ends_it_at_once(program: str, number: signal.Signals) -> None:
    """What the first one began may wait for a server that does not answer."""
    assert run_python(program, str(int(number)), "later") == (128 + number, "stopped\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_one_that_is_delivered_twice_counts_once(number: signal.Signals) -> None:
    """GNU timeout sends it to its child and to the group."""
    assert run_python(WORK_FIRST, str(int(number)), "twice") == (0, "went on\n")
    assert run_python(CLEAN_UP, str(int(number)), "twice") == (128 + number, "went on\nstopped\n")
