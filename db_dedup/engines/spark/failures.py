"""Turn errors of Spark into DedupError: one line with the reason, without values of rows."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from db_dedup.dialects.errors import without_values
from db_dedup.dialects.jdbc import EXCEPTION_OF_A_DRIVER, SHOWN_STATES
from db_dedup.errors import ConfigError, DedupError

_OUR_ERROR: Final = re.compile(r"^db_dedup\.errors\.\w+: (?P<message>.+)$", re.MULTILINE)
_NO_MODULE: Final = re.compile(r"^ModuleNotFoundError: No module named '(?P<module>[^']+)'", re.MULTILINE)
_JAVA_ERROR: Final = re.compile(
    r"^(?:: |Caused by: )?[\w.$]+(?:Exception|Error): (?P<message>.+)$", re.MULTILINE
)
_PYTHON_ERROR: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<message>\S.*)")
_LONGEST_REASON: Final = 300


def is_of_spark(error: Exception) -> bool:
    """Return whether an error comes from Spark or from its driver in Java."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


@contextmanager
def translate_spark_errors() -> Iterator[None]:
    """Re-raise errors of Spark as DedupError, in one line."""
    try:
        yield
    except DedupError:
        raise
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise _translated(error) from error


def _translated(error: Exception) -> DedupError:
    text = str(error)
    ours = _OUR_ERROR.search(text)
    if ours is not None:
        return DedupError("{message}", message=ours["message"])
    missing = _NO_MODULE.search(text)
    if missing is not None:
        return ConfigError(
            "the Python of Spark's executors has no {module}: install db-dedup with the extra spark on each "
            "machine, and set PYSPARK_PYTHON to the Python that has it",
            module=missing["module"],
        )
    return DedupError("Spark failed: {reason}", reason=_reason(error, text)[:_LONGEST_REASON])


def _reason(error: Exception, text: str) -> str:
    of_driver = EXCEPTION_OF_A_DRIVER.search(text)
    if of_driver is not None:
        state = _sql_state(error)
        if state is None:
            return of_driver[0]
        if not state.startswith(SHOWN_STATES):
            return f"{of_driver[0]} (SQLSTATE {state})"
        return without_values(_of_java(text))
    traces = [*_PYTHON_ERROR.finditer(text)]
    return traces[-1]["message"] if traces else _of_java(text)


def _of_java(text: str) -> str:
    """Return the message of the last exception, which is the cause of those before it."""
    found = [*_JAVA_ERROR.finditer(text)]
    return found[-1]["message"] if found else text.strip().partition("\n")[0]


def _sql_state(error: Any) -> str | None:
    """Return the SQLSTATE of the exception of a JDBC driver that caused an error, if it is known."""
    cause = getattr(error, "java_exception", None)
    try:
        while cause is not None:
            if EXCEPTION_OF_A_DRIVER.fullmatch(cause.getClass().getName()):
                state = cause.getSQLState()
                return None if state is None else str(state)
            cause = cause.getCause()
    except Exception as second:
        if not is_of_spark(second):  # no session any more, or an exception without a SQLSTATE
            raise
    return None
