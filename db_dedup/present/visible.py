"""Texts of the user, made safe to show: none of their characters moves a cursor or commands a terminal."""

import re
from typing import Final

_COMMANDING: Final = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff"
"""Characters that move the cursor, command the terminal or change the direction of writing, as a regular
expression names them in brackets."""
_COMMANDING_ONE: Final = re.compile(f"[{_COMMANDING}]")
_UNSEEN: Final = re.compile(f"[ {_COMMANDING}]+")


def visible(text: str) -> str:
    """Return the text with an escape such as `\\x1b` for each character that would command the terminal."""
    return _COMMANDING_ONE.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Return the text with white space collapsed and without what would command the terminal."""
    return _UNSEEN.sub(" ", text).strip()
