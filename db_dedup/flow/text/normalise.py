"""Step 2, text: bring different spellings of the same text to one form.

NFKC, case-folding and white space come first. A `value` column gets nothing else. In a `text` column,
traditional characters become simplified ones, Arabic vowel signs are left out, and parts without meaning
(URLs, masked runs, runs of one character) are collapsed, because they would decide the fingerprint: in a test
with masks kept, most pairs within three bits shared little but their masks. Numerals of dates and amounts
become digits last.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._code_points import code_points
from db_dedup.flow.text.former_posts import clean_as_before
from db_dedup.flow.text.posts import clean_post, may_have_form, strip_official
from db_dedup.flow.text.variants import (
    ARABIC_STROKE,
    NUMERALS,
    REACH,
    UNITS,
    simplified_characters,
    strip_arabic_marks,
    write_digits,
)
from db_dedup.records.forms import NONE, OFFICIAL
from db_dedup.records.pages import cut_pages

NORMALISERS: Final = ("plain", "tweet")
"""The names that a table can choose from; `tweet` also removes the forms of retweets and replies (P2)."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]+")
_URL = re.compile(r"(?:https?://|www\.)[^\s\u3000-\u9fff\uff00-\uffef]+")
_STARS = re.compile(r"\*+")
_CROSSES = re.compile(r"(?<![a-z0-9])x{2,}(?![a-z0-9])")
# Repeated digits have a meaning: 10000 is not 100. Other characters add no meaning after the third one.
_REPEATED = re.compile(r"([^\d\s])\1{3,}")

_BATCH_LINES = 256
_BATCH_CHARACTERS = 1 << 18

# Composition takes time with the square of a run of marks. Unicode's stream-safe format has the same limit.
_MARKS_IN_A_ROW: Final = 30
_PLANE = 1 << 16

# What the fold table says of a character: it needs the slow way, it is a numeral, it can follow a numeral.
_UNUSUAL, _NUMERAL, _UNIT = 1, 2, 4


class _Steps(NamedTuple):
    """The steps of a normaliser after folding.

    Attributes:
        unites_variants: traditional and simplified characters become the same, and so on (`variants`).
        collapses: parts without meaning are collapsed.
        cleans_posts: the forms of retweets and replies are left out as until version 3 of the recipes.
    """

    unites_variants: bool
    collapses: bool
    cleans_posts: bool = False


class _Folded(NamedTuple):
    """Folded lines.

    Attributes:
        text: the lines, joined by newlines.
        codes: uint32[n], the characters of the text.
        numerals: the lines in which numerals may be to convert.
    """

    text: str
    codes: NDArray[np.uint32]
    numerals: list[int]


_FOLDING: Final = _Steps(unites_variants=False, collapses=False)
_POSTS: Final = _Steps(unites_variants=True, collapses=True)


def normalise_batch(
    texts: Sequence[str],
    normaliser: str = "plain",
    *,
    unites_variants: bool = True,
    as_before: bool = False,
) -> list[str]:
    """Bring texts to the form that is compared.

    Args:
        texts: any strings, "" for NULL.
        normaliser: one of `NORMALISERS`.
        unites_variants: also bring to one spelling what Unicode keeps apart (`variants`). Recipe versions 1
            and 2 did not.
        as_before: clean posts as recipe versions 1 to 3 did.

    Returns:
        As many strings, without white space other than single inner spaces.
    """
    if normaliser == "tweet" and not as_before:
        return normalise_posts(texts)[0]
    return _normalised(texts, _steps(normaliser, unites_variants))


def normalise_posts(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return (the posts as they are compared, the number of each one's form).

    The form of an official retweet is looked for before the case is folded, since it begins with a capital.
    """
    split = [strip_official(text) for text in texts]
    folded = _normalised([text for text, _ in split], _POSTS)
    forms: list[int] = []
    for place, (text, (_, is_official)) in enumerate(zip(folded, split, strict=True)):
        form = NONE
        if may_have_form(text):
            folded[place], form = clean_post(text)
        forms.append(OFFICIAL if is_official else form)
    return folded, forms


def fold_batch(texts: Sequence[str]) -> list[str]:
    """Bring values to one spelling: NFKC, case-folding, white space.

    Links and masks can be the meaning of a value, so they stay.

    Args:
        texts: any strings, "" for NULL.

    Returns:
        As many strings, without white space other than single inner spaces.
    """
    return _normalised(texts, _FOLDING)


def _steps(normaliser: str, unites_variants: bool) -> _Steps:
    return _Steps(unites_variants, collapses=True, cleans_posts=normaliser == "tweet")


def _normalised(texts: Sequence[str], steps: _Steps) -> list[str]:
    """Return the folded texts after these steps, which run on batches of lines."""
    normalised: list[str] = []
    for batch in _batches(texts):
        *others, last = batch
        if len(last) <= 2 * _BATCH_CHARACTERS or steps.cleans_posts:
            normalised += _normalised_lines(batch, steps)
        else:
            normalised += [*_normalised_lines(others, steps), _normalised_in_pieces(last, steps)]
    return normalised


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in batches; only those of long texts are measured text by text, which takes longer."""
    for first in range(0, len(texts), _BATCH_LINES):
        batch = texts[first : first + _BATCH_LINES]
        if sum(map(len, batch)) <= _BATCH_CHARACTERS:
            yield batch
        else:
            yield from cut_pages(batch, len, _BATCH_LINES, _BATCH_CHARACTERS)


def _normalised_lines(texts: Sequence[str], steps: _Steps) -> list[str]:
    if not texts:
        return []
    folded = _fold_lines([text.replace("\n", " ") for text in texts], steps.unites_variants)
    text = _collapse(folded.text, folded.codes) if steps.collapses else folded.text
    if steps.cleans_posts:
        text = clean_as_before(text)
    lines = text.split("\n")
    for line in folded.numerals:
        lines[line] = write_digits(lines[line])
    return [" ".join(line.split()) if _has_excess_blanks(line) else line for line in lines]


def _has_excess_blanks(line: str) -> bool:
    """Return whether a folded line, which has no other white space, has a space that does not count."""
    return "  " in line or line[:1] == " " or line[-1:] == " "


def _normalised_in_pieces(text: str, steps: _Steps) -> str:
    """Normalise a long text in pieces; return the same text as without pieces.

    It is cut where no composition and no collapsed part can reach across. Do not use it to clean posts as
    before, since a form can reach across any place.
    """
    parts: list[str] = []
    begin, blank = 0, ""
    while begin < len(text):
        seam = _seam().search(text, begin + _BATCH_CHARACTERS)
        end = seam.end() if seam else len(text)
        [piece] = _normalised_lines([text[begin:end]], steps)
        if piece:
            parts += (blank, piece) if parts else (piece,)
        begin, blank = end, " " if seam and seam.group().isspace() else ""
    return "".join(parts)


@cache
def _seam() -> re.Pattern[str]:
    """Return the pattern of a place where a text can be cut, its end.

    It is after white space, and between two different ideographs that fold to themselves and decide about no
    numeral.
    """
    bound = {*map(chr, simplified_characters()), *REACH}
    free = "[" + "".join(c for c in map(chr, range(0x4E00, 0x9FA6)) if c not in bound) + "]"
    return re.compile(rf"\s|({free})(?!\1)(?={free})")


def fold(text: str) -> str:
    """Apply NFKC and case-folding; folding can undo the composition (as with U+0345), so NFKC comes twice."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@cache
def _fold_table(unites_variants: bool) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return for each character of the basic plane its folded form, and what is special about it.

    Most characters fold to one character whatever their neighbours are. A table does this fifty times faster
    than `unicodedata`. Three kinds need the slow way: combining characters, characters that fold to several
    or to none, and invisible characters.

    Returns:
        (uint32[65536] folded characters, uint8[65536] flags).
    """
    if unites_variants:
        return _with_variants(*_fold_table(False))
    table = np.arange(_PLANE, dtype=np.uint32)
    flags = np.zeros(_PLANE, np.uint8)
    for code in range(_PLANE):
        character = chr(code)
        folded = fold(character)
        if len(folded) == 1 and not _may_combine(character) and not _may_combine(folded):
            table[code] = ord(folded)
        else:
            flags[code] = _UNUSUAL
        if character.isspace() and character != "\n":
            table[code] = ord(" ")
    for character in "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\uffff":
        flags[ord(character)] = _UNUSUAL
    return table, flags


def _with_variants(
    table: NDArray[np.uint32], flags: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return the table with simplified characters, and the flags with those of numerals."""
    simplified = np.arange(table.max() + 1, dtype=np.uint32)
    for character, simple in simplified_characters().items():
        simplified[character] = simple
    table = simplified[table]
    of_folded = np.zeros(simplified.size, np.uint8)
    of_folded[[*map(ord, NUMERALS)]] |= _NUMERAL
    of_folded[[*map(ord, UNITS)]] |= _UNIT
    flags = flags | of_folded[table]
    flags[ord(ARABIC_STROKE)] |= _UNUSUAL
    return table, flags


def _may_combine(character: str) -> bool:
    """Return whether a character can change the character before it when composed."""
    if unicodedata.combining(character) or 0x1100 <= ord(character) <= 0x11FF:
        return True
    return unicodedata.category(character) in ("Mn", "Mc", "Me")


@cache
def _excess_marks() -> re.Pattern[str]:
    """Return the pattern of a run of too many combining marks; its group 1 is the allowed part."""
    marks = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.combining(c)]
    marks += "\u0344\u0f73\u0f75\u0f81"  # each of which becomes two
    anything = "[" + "".join(marks) + "]"
    return re.compile(f"({anything}{{{_MARKS_IN_A_ROW}}}){anything}+")


def _fold_lines(lines: list[str], unites_variants: bool) -> _Folded:
    table, flags = _fold_table(unites_variants)
    codes = code_points("\n".join(lines))
    # Whatever is beyond the basic plane is clipped to its last place, which needs the slow way.
    found = flags.take(codes, mode="clip")
    unusual = (found & _UNUSUAL).view(np.bool_)
    if not unusual.any():
        folded = table.take(codes, mode="clip")
    else:
        may_have_excess = _longest_run(unusual) > _MARKS_IN_A_ROW
        for line in _lines_of(np.flatnonzero(unusual), codes):
            text = _excess_marks().sub(r"\1", lines[line]) if may_have_excess else lines[line]
            text = _INVISIBLE.sub("", fold(text))
            lines[line] = strip_arabic_marks(text) if unites_variants else text
        codes = code_points("\n".join(lines))
        found = flags.take(codes, mode="clip")
        # Folding twice changes nothing, so the table can be applied to lines that were folded the slow way.
        folded = np.where(codes < _PLANE, table.take(codes, mode="clip"), codes)
    text = folded.tobytes().decode("utf-32-le", "surrogatepass")
    return _Folded(text, folded, _lines_with_numerals(found, codes))


def _lines_with_numerals(flags: NDArray[np.uint8], codes: NDArray[np.uint32]) -> list[int]:
    """Return the lines in which a unit of dates or amounts follows a numeral."""
    # The shifts bring both flags to the lowest place, where no other flag is.
    places = np.flatnonzero(((flags[:-1] >> 1) & (flags[1:] >> 2)).view(np.bool_))
    return _lines_of(places, codes) if places.size else []


def _lines_of(places: NDArray[np.intp], codes: NDArray[np.uint32]) -> list[int]:
    """Return the lines that these places are in, each once."""
    lines: list[int] = np.unique(np.searchsorted(np.flatnonzero(codes == ord("\n")), places)).tolist()
    return lines


def _longest_run(flags: NDArray[np.bool_]) -> int:
    """Return the length of the longest run of True."""
    return int(np.max(np.diff(np.flatnonzero(~flags), prepend=-1, append=flags.size))) - 1


def _collapse(folded: str, codes: NDArray[np.uint32]) -> str:
    """Return folded lines without parts that have no meaning; the codes are those of the lines."""
    text = folded
    if "http" in text or "www." in text:
        text = _URL.sub(" ", text)
    if "*" in text:
        text = _STARS.sub("*", text)
    if "xx" in text:
        text = _CROSSES.sub("*", text)
    lines = _lines_with_runs(codes if text is folded else code_points(text))
    if lines:
        parts = text.split("\n")
        for line in lines:
            parts[line] = _REPEATED.sub(r"\1\1\1", parts[line])
        text = "\n".join(parts)
    return text


def _lines_with_runs(codes: NDArray[np.uint32]) -> list[int]:
    """Return the lines in which a character other than a space or a digit occurs four times in a row.

    A few other lines may be among them. This is cheaper than the regular expression.
    """
    same = (codes[1:] == codes[:-1]) & (codes[1:] != ord(" "))
    same &= (codes[1:] < ord("0")) | (codes[1:] > ord("9"))
    places = np.flatnonzero(same[2:] & same[1:-1] & same[:-2])
    return _lines_of(places, codes) if places.size else []
