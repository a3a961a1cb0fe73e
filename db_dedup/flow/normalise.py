"""Step 2, text: one spelling for what people meant to be the same.

NFKC, case-folding and white space first; then what carries no meaning (URLs, masked runs, runs of one
character) is collapsed, because left in, it decides the fingerprint: with masks kept, most pairs within
three bits were pairs of masks.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

NORMALISERS: Final = ("plain", "tweet")
"""Names a table may choose from; `tweet` also strips the forms of retweets and replies (P2)."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]+")
_URL = re.compile(r"(?:https?://|www\.)[^\s\u3000-\u9fff\uff00-\uffef]+")
_STARS = re.compile(r"\*+")
_CROSSES = re.compile(r"(?<![a-z0-9])x{2,}(?![a-z0-9])")
# Digits may repeat and mean it (10000 is not 100); anything else says no more after the third time.
_REPEATED = re.compile(r"([^\d\s])\1{3,}")

_RETWEETED_BY = re.compile(r"(?:[^\S\n]*\bretweeted by [^\n]*)$", re.MULTILINE)
_REPOST = re.compile(r"(?://|\bvia|\brt|回复|转发)?[^\S\n]*@[\w\-.·]+[^\S\n]*:?")
_BARE_RT = re.compile(r"^[^\S\n]*rt\b[^\S\n]*:?|转发微博|轉發微博", re.MULTILINE)


def normalise_batch(texts: Sequence[str], normaliser: str = "plain") -> list[str]:
    """Bring texts to the form that is compared.

    Args:
        texts: any strings; NULL is the caller's to turn into "".
        normaliser: one of `NORMALISERS`.

    Returns:
        As many strings, none with white space other than single inner spaces.
    """
    if not texts:
        return []
    joined = "\n".join([text.replace("\n", " ") for text in texts])
    # Folding can undo the composition (as with U+0345), so it is composed again.
    joined = _nfkc(_nfkc(joined).casefold())
    joined = _collapse(joined)
    if normaliser == "tweet":
        joined = _strip_reposts(joined)
    return [" ".join(line.split()) for line in joined.split("\n")]


def _nfkc(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _collapse(text: str) -> str:
    if _INVISIBLE.search(text):
        text = _INVISIBLE.sub("", text)
    if "http" in text or "www." in text:
        text = _URL.sub(" ", text)
    if "*" in text:
        text = _STARS.sub("*", text)
    if "xx" in text:
        text = _CROSSES.sub("*", text)
    if _has_run_of_four(text):
        text = _REPEATED.sub(r"\1\1\1", text)
    return text


def _has_run_of_four(text: str) -> bool:
    """Whether some character stands four times in a row; far cheaper than the regular expression."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    same = codes[1:] == codes[:-1]
    return bool(np.any(same[2:] & same[1:-1] & same[:-2]))


def _strip_reposts(text: str) -> str:
    text = _RETWEETED_BY.sub("", text)
    return _until_stable(lambda t: _BARE_RT.sub(" ", _REPOST.sub(" ", t)), text)


def _until_stable(change: Callable[[str], str], text: str) -> str:
    while (changed := change(text)) != text:
        text = changed
    return text
