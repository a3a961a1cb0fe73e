"""How posts were cleaned until version 3 of the recipes: labels of that time are found by the digests."""

import re
from typing import Final

_BLANKS: Final = re.compile(r"[^\S\n]+")
_RETWEETED_BY: Final = re.compile(r"(?:[^\S\n]*\bretweeted by [^\n]*)$", re.MULTILINE)
_REPOST: Final = re.compile(r"(?://|\bvia|\brt|回复|转发)?[^\S\n]*@[\w\-.·]+[^\S\n]*:?")
_BARE_RT: Final = re.compile(r"^(?:[^\S\n]*rt\b[^\S\n]*:?)+|转发微博|轉發微博", re.MULTILINE)


def clean_as_before(text: str) -> str:
    """Return lines of folded posts without the forms that were known then."""
    # Blanks are collapsed first: in a long run the expression would start again at each blank.
    text = _RETWEETED_BY.sub("", _BLANKS.sub(" ", text))
    before = None
    while text != before:
        before = text
        text = _BARE_RT.sub(" ", _BLANKS.sub(" ", _REPOST.sub(" ", text)))
    return text
