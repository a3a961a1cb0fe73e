"""What the error messages of all databases have in common."""

import re

_QUOTED_VALUE = re.compile(r"'[^']*'")


def first_line(error: BaseException) -> str:
    """The first line of a driver's message: what follows may show values."""
    lines = str(error).strip().splitlines()
    return " ".join(lines[0].split()) if lines else type(error).__name__


def one_line(error: BaseException) -> str:
    """A driver's whole message on one line, for errors that cannot show values."""
    return " ".join(str(error).split()) or type(error).__name__


def without_values(message: str) -> str:
    """A message with all that stands in single quotes left out."""
    return _QUOTED_VALUE.sub("'...'", message)
