"""Step 2, text: one spelling for what people meant to be the same.

NFKC, case-folding and white space first; that is all for a short value. In a longer text, what carries no
meaning (URLs, masked runs, runs of one character) is then collapsed, because left in, it decides the
fingerprint: with masks kept, most pairs within three bits were pairs of masks.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.records.pages import cut_pages

NORMALISERS: Final = ("plain", "tweet")
"""Names a table may choose from; `tweet` also strips the forms of retweets and replies (P2)."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]+")
_URL = re.compile(r"(?:https?://|www\.)[^\s\u3000-\u9fff\uff00-\uffef]+")
_STARS = re.compile(r"\*+")
_CROSSES = re.compile(r"(?<![a-z0-9])x{2,}(?![a-z0-9])")
# Digits may repeat and mean it (10000 is not 100); anything else says no more after the third time.
_REPEATED = re.compile(r"([^\d\s])\1{3,}")

_BLANKS = re.compile(r"[^\S\n]+")
_RETWEETED_BY = re.compile(r"(?:[^\S\n]*\bretweeted by [^\n]*)$", re.MULTILINE)
_REPOST = re.compile(r"(?://|\bvia|\brt|回复|转发)?[^\S\n]*@[\w\-.·]+[^\S\n]*:?")
_BARE_RT = re.compile(r"^(?:[^\S\n]*rt\b[^\S\n]*:?)+|转发微博|轉發微博", re.MULTILINE)

_BATCH_LINES = 256
_BATCH_CHARACTERS = 1 << 18

# Behind white space, and between two different ideographs that fold to themselves.
_SEAM = re.compile(r"\s|([\u4e00-\u9fa5])(?!\1)(?=[\u4e00-\u9fa5])")
# Composition takes time with the square of a run of marks; Unicode's stream-safe format allows as many.
_MARKS_IN_A_ROW: Final = 30
_PLANE = 1 << 16

_Steps = Sequence[Callable[[str], str]]


def normalise_batch(texts: Sequence[str], normaliser: str = "plain") -> list[str]:
    """Bring texts to the form that is compared.

    Args:
        texts: any strings; NULL is the caller's to turn into "".
        normaliser: one of `NORMALISERS`.

    Returns:
        As many strings, none with white space other than single inner spaces.
    """
    return _normalised(texts, (_collapse, _strip_reposts) if normaliser == "tweet" else (_collapse,))


def fold_batch(texts: Sequence[str]) -> list[str]:
    """Bring values to one spelling: NFKC, case-folding, white space. Links and masks are what a value says,
    so they stay.

    Args:
        texts: any strings; NULL is the caller's to turn into "".

    Returns:
        As many strings, none with white space other than single inner spaces.
    """
    return _normalised(texts, ())


def _normalised(texts: Sequence[str], steps: _Steps) -> list[str]:
    """The folded texts, after these steps on batches of lines."""
    normalised: list[str] = []
    for batch in cut_pages(texts, len, _BATCH_LINES, _BATCH_CHARACTERS):
        *others, last = batch
        if len(last) <= 2 * _BATCH_CHARACTERS or _strip_reposts in steps:
            normalised += _normalised_lines(batch, steps)
        else:
            normalised += [*_normalised_lines(others, steps), _normalised_in_pieces(last, steps)]
    return normalised


def _normalised_lines(texts: Sequence[str], steps: _Steps) -> list[str]:
    if not texts:
        return []
    folded = _fold_lines([text.replace("\n", " ") for text in texts])
    for step in steps:
        folded = step(folded)
    return [" ".join(line.split()) for line in folded.split("\n")]


def _normalised_in_pieces(text: str, steps: _Steps) -> str:
    """A long text as it would be normalised whole; it is cut where nothing that is composed or collapsed
    reaches across. Reposts may reach across any place."""
    parts: list[str] = []
    begin, blank = 0, ""
    while begin < len(text):
        seam = _SEAM.search(text, begin + _BATCH_CHARACTERS)
        end = seam.end() if seam else len(text)
        [piece] = _normalised_lines([text[begin:end]], steps)
        if piece:
            parts += (blank, piece) if parts else (piece,)
        begin, blank = end, " " if seam and seam.group().isspace() else ""
    return "".join(parts)


def fold(text: str) -> str:
    """NFKC and case-folding; folding can undo the composition (as with U+0345), so it is composed again."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@cache
def _fold_table() -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """For each character of the basic plane: what it folds to, and whether that depends on its neighbours.

    Nearly all text is made of characters that fold one by one to one other, which a table does fifty times
    faster than `unicodedata`. Combining characters, and those that fold to several or to none, need the slow
    road, as does what no reader can see.
    """
    table = np.arange(_PLANE, dtype=np.uint32)
    is_unusual = np.zeros(_PLANE, np.bool_)
    for code in range(_PLANE):
        character = chr(code)
        folded = fold(character)
        if len(folded) == 1 and not _may_combine(character) and not _may_combine(folded):
            table[code] = ord(folded)
        else:
            is_unusual[code] = True
    for character in "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff":
        is_unusual[ord(character)] = True
    return table, is_unusual


def _may_combine(character: str) -> bool:
    """Whether a character can change what stands before it when composed."""
    if unicodedata.combining(character) or 0x1100 <= ord(character) <= 0x11FF:
        return True
    return unicodedata.category(character) in ("Mn", "Mc", "Me")


@cache
def _excess_marks() -> re.Pattern[str]:
    """A run of combining marks, its first part apart from what is too much."""
    marks = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.combining(c)]
    marks += "\u0344\u0f73\u0f75\u0f81"  # each of which becomes two
    anything = "[" + "".join(marks) + "]"
    return re.compile(f"({anything}{{{_MARKS_IN_A_ROW}}}){anything}+")


def _fold_lines(lines: list[str]) -> str:
    """The folded lines, joined by newlines."""
    table, is_unusual = _fold_table()
    codes = _code_points("\n".join(lines))
    in_plane = np.minimum(codes, _PLANE - 1)
    unusual = (codes >= _PLANE) | is_unusual[in_plane]
    if not unusual.any():
        return table[in_plane].tobytes().decode("utf-32-le", "surrogatepass")
    ends = np.flatnonzero(codes == ord("\n"))
    may_have_excess = _longest_run(unusual) > _MARKS_IN_A_ROW
    for line in np.unique(np.searchsorted(ends, np.flatnonzero(unusual))).tolist():
        text = _excess_marks().sub(r"\1", lines[line]) if may_have_excess else lines[line]
        lines[line] = _INVISIBLE.sub("", fold(text))
    codes = _code_points("\n".join(lines))
    # Folding twice changes nothing, so the lines of the slow road may pass through the table as well.
    in_plane = np.minimum(codes, _PLANE - 1)
    return np.where(codes < _PLANE, table[in_plane], codes).tobytes().decode("utf-32-le", "surrogatepass")


def _longest_run(flags: NDArray[np.bool_]) -> int:
    """How many in a row are True."""
    return int(np.max(np.diff(np.flatnonzero(~flags), prepend=-1, append=flags.size))) - 1


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _collapse(text: str) -> str:
    if "http" in text or "www." in text:
        text = _URL.sub(" ", text)
    if "*" in text:
        text = _STARS.sub("*", text)
    if "xx" in text:
        text = _CROSSES.sub("*", text)
    lines = _lines_with_runs(text)
    if lines:
        parts = text.split("\n")
        for line in lines:
            parts[line] = _REPEATED.sub(r"\1\1\1", parts[line])
        text = "\n".join(parts)
    return text


def _lines_with_runs(text: str) -> list[int]:
    """The lines in which something other than a space or a digit stands four times in a row, and perhaps
    others; cheaper than the expression."""
    codes = _code_points(text)
    same = (codes[1:] == codes[:-1]) & (codes[1:] != ord(" "))
    same &= (codes[1:] < ord("0")) | (codes[1:] > ord("9"))
    places = np.flatnonzero(same[2:] & same[1:-1] & same[:-2])
    if not places.size:
        return []
    lines: list[int] = np.unique(np.searchsorted(np.flatnonzero(codes == ord("\n")), places)).tolist()
    return lines


def _strip_reposts(text: str) -> str:
    # Long runs of blanks would be looked through again from each of them.
    text = _RETWEETED_BY.sub("", _BLANKS.sub(" ", text))
    return _until_stable(lambda t: _BARE_RT.sub(" ", _BLANKS.sub(" ", _REPOST.sub(" ", t))), text)


def _until_stable(change: Callable[[str], str], text: str) -> str:
    while (changed := change(text)) != text:
        text = changed
    return text
