"""Frames: what many otherwise unlike rows share, such as the form around every complaint.

docs/explanation/frames.md says what a frame is, decision 0046 where the numbers come from.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import compress, groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.text._frame_grams import Covered, covered_by, row_grams
from db_dedup.records.frames import CUT, NO_FRAMES, FrameList
from db_dedup.records.pages import cut_pages
from db_dedup.records.recipe import RecipeColumn

LEAST_ROWS = 200
"""With fewer canonical rows no frame is looked for."""

_COMMON_SHARE: Final = 0.05
_LEAST_SHARE: Final = 0.02
_COMMON_ROWS: Final = 20
_ENOUGH_ROWS: Final = 60
"""A gram is common if it occurs in 5 % of the rows, and in at least 20. In a larger sample 60 rows are enough
if they are 2 % of the rows."""

_LEAST_OWN: Final = 12
_ENOUGH_OWN: Final = 60
_OWN_PART: Final = 0.2
_OWN_SHARE: Final = 0.2
"""A row has own content if what no common gram covers comes to a fifth of what common grams cover, and to
at least 12 characters; 60 are always enough. If a fifth of the rows of a common gram have own content, it
belongs to a frame."""

_FORMER: Final = 0.7
"""A gram of the former list stays down to this part of the shares."""

_LEAST_LEFT: Final = 4
"""A part with fewer letters, digits and ideographs is left out with the frame around it: it is a name between
two labels. If no part has more, the text is read entirely."""

_END_CHARACTERS: Final = 2_000
"""Frames are looked for in so many characters at both ends of a text."""

_LOOKED_AT: Final = 32


def measure_frames(
    columns: Sequence[RecipeColumn],
    texts: Sequence[Sequence[str]],
    former: FrameList = NO_FRAMES,
    least_rows: int | None = None,
    repeats: Sequence[int] | None = None,
) -> FrameList:
    """Return the frame grams of a sample of rows.

    Args:
        columns: of the recipe.
        texts: column by column the texts of the sampled rows as they are compared, exact duplicates once.
        former: the list in use: a gram of it stays in the list down to a lower share of the rows.
        least_rows: a column with fewer texts has no frame; None for `LEAST_ROWS`.
        repeats: how many rows have the texts of each of the n rows; None if each has its own.
    """
    nothing = np.empty(0, np.uint64)
    least = LEAST_ROWS if least_rows is None else least_rows
    counts = repeats or [1] * len(texts[0])
    found = tuple(
        _frame_grams(own, counts, former.of_column(i), least) if column.kind == "text" else nothing
        for i, (column, own) in enumerate(zip(columns, texts, strict=True))
    )
    return FrameList(found) if any(grams.size for grams in found) else NO_FRAMES


def without_frames(columns: Sequence[Sequence[str]], frames: FrameList) -> list[list[str]]:
    """Return the texts of rows, column by column, without the frames that the list covers.

    A text without a frame is returned as the same object. Where something was cut out, `CUT` is between the
    parts that are left, so that no word and no gram reaches across.

    Args:
        columns: column by column the texts of the rows as they are compared.
        frames: the frozen list.
    """
    return [_column_without(texts, frames.of_column(i)) for i, texts in enumerate(columns)]


def frame_spans(text: str, column: int, frames: FrameList) -> list[tuple[int, int]]:
    """Return (start, end) of each part of one text that is left out, ascending."""
    grams = frames.of_column(column)
    if not grams.size:
        return []
    covered = covered_by([text], text, grams)
    return _spans_to_cut(text, zip(covered.starts.tolist(), covered.ends.tolist(), strict=True))


def frame_grams_of(text: str, column: int, frames: FrameList) -> NDArray[np.int64]:
    """Return int64[m], ascending: the places in the list of a column of the frame grams that a text has."""
    grams = frames.of_column(column)
    (own,) = row_grams([text])
    return np.flatnonzero(np.isin(grams, own, assume_unique=True))


def _column_without(texts: Sequence[str], grams: NDArray[np.uint64]) -> list[str]:
    result = list(texts)
    if not grams.size or not result:
        return result
    joined = "\n".join(result)
    covered = covered_by(result, joined, grams)
    if not covered.rows.size:
        return result
    lengths = np.fromiter(map(len, result), np.int64, len(result))
    firsts = np.cumsum(lengths + 1) - lengths - 1
    offsets = firsts[covered.rows]
    found = zip(
        covered.rows.tolist(),
        (covered.starts - offsets).tolist(),
        (covered.ends - offsets).tolist(),
        strict=True,
    )
    for row, of_row in groupby(found, lambda span: span[0]):
        spans = _spans_to_cut(result[row], [(start, end) for _, start, end in of_row])
        if spans:
            text = result[row]
            result[row] = CUT.join(text[start:end] for start, end in _between(text, spans))
    return result


def _spans_to_cut(text: str, covered: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what is left out of a text: the covered spans, and what is too little beside or between them.

    Nothing is left out if nothing would be left.
    """
    parts = _between(text, _with_signs(text, covered))
    kept = [(start, end) for start, end in parts if _is_enough(text[start:end])]
    return _between(text, kept) if kept else []


def _between(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (start, end) of the parts of a text that these spans leave."""
    borders = [0, *(place for span in spans for place in span), len(text)]
    return [(a, b) for a, b in zip(borders[::2], borders[1::2], strict=True) if a < b]


def _with_signs(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans with the signs and spaces around them: what is left begins and ends with neither."""
    widened: list[tuple[int, int]] = []
    for span in spans:
        start, end = span
        while start and not _has_meaning(text[start - 1]):
            start -= 1
        while end < len(text) and not _has_meaning(text[end]):
            end += 1
        if widened and start <= widened[-1][1]:
            start = widened.pop()[0]
        widened.append((start, end))
    return widened


def _has_meaning(character: str) -> bool:
    """Return whether a character is a letter, digit or ideograph, or a mark that belongs to one."""
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def _is_enough(part: str) -> bool:
    """Return whether a part has enough letters, digits and ideographs: mostly its beginning decides."""
    count = 0
    for first in range(0, len(part), _LOOKED_AT):
        count += sum(map(str.isalnum, part[first : first + _LOOKED_AT]))
        if count >= _LEAST_LEFT:
            return True
    return False


def _frame_grams(
    texts: Sequence[str], repeats: Sequence[int], former: NDArray[np.uint64], least_rows: int
) -> NDArray[np.uint64]:
    """Return uint64[g], ascending: the frame grams of one column."""
    counted = np.array(list(compress(repeats, texts)), np.int64)
    sampled = [_ends_of(text) for text in texts if text]
    if len(sampled) < least_rows:
        return np.empty(0, np.uint64)
    pages = list(cut_pages(sampled, len, len(sampled)))
    of_rows = [grams for page in pages for grams in row_grams(page)]
    values, counts = _counted(np.concatenate(of_rows))
    stays = np.isin(values, former, assume_unique=True)
    is_common = counts >= np.where(stays, _FORMER, 1.0) * _least_common(len(sampled))
    common, stays = values[is_common], stays[is_common]
    if not common.size:
        return common
    has_own = np.concatenate([_has_own(covered_by(page, "\n".join(page), common)) for page in pages])
    having_own = _rows_with(common, list(compress(of_rows, has_own)), counted[has_own])
    shares = having_own / _rows_with(common, of_rows, counted)
    return common[shares >= np.where(stays, _FORMER, 1.0) * _OWN_SHARE]


def _rows_with(
    common: NDArray[np.uint64], of_rows: Sequence[NDArray[np.uint64]], repeats: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return int64[g]: in how many rows each common gram is; a row counts as often as it is repeated."""
    grams = np.concatenate([np.empty(0, np.uint64), *of_rows])
    weights = np.repeat(repeats, np.array([own.size for own in of_rows], np.int64))
    places = np.minimum(np.searchsorted(common, grams), common.size - 1)
    is_common = common[places] == grams
    return np.bincount(places[is_common], weights[is_common], common.size).astype(np.int64)


def _has_own(covered: Covered) -> NDArray[np.bool_]:
    """Return bool[r]: whether each row has enough own content beside its common content."""
    common = covered.sizes - covered.own
    has_own: NDArray[np.bool_] = covered.own >= np.clip(common * _OWN_PART, _LEAST_OWN, _ENOUGH_OWN)
    return has_own


def _least_common(row_count: int) -> float:
    """Return in how many of the rows a gram is common."""
    return max(_COMMON_ROWS, _LEAST_SHARE * row_count, min(_COMMON_SHARE * row_count, _ENOUGH_ROWS))


def _counted(grams: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return (the distinct grams, ascending; in how many rows each is)."""
    ordered = np.sort(grams)
    firsts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + np.uint64(1)))
    return ordered[firsts], np.diff(firsts, append=ordered.size)


def _ends_of(text: str) -> str:
    """Return the parts of a text in which frames are looked for: all of it, or its beginning and end."""
    if len(text) <= 2 * _END_CHARACTERS:
        return text
    return f"{text[:_END_CHARACTERS]}{CUT}{text[-_END_CHARACTERS:]}"
