"""The words in the name of a column."""

import re
from typing import Final

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")


def words_of_name(name: str) -> list[str]:
    """Return the words of a name in lower case: created_at and createdAt have the words created and at.

    Consecutive ideographs are one word.
    """
    return [word.casefold() for word in _WORD.findall(name)]
