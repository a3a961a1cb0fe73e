"""Texts that a spreadsheet would take for formulas."""

import re
from typing import Any, Final

_FORMULA: Final = re.compile(r"[\t\r]|\s*[=+\-@＝＋－＠]")
"""Some programs drop a tab or a carriage return at the beginning of a cell, and read on."""
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


def without_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would take for a formula; a number is none."""
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
