"""Warn of what a table will suffer from: official answers, a frame that most rows share, short texts."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from statistics import median
from typing import Final

from db_dedup.amounts import counted
from db_dedup.proposal.profile import UNSPACED, count_words

ENOUGH_ROWS: Final = 20
"""With fewer texts in the sample nothing is said about them: what they share may be chance."""
SHORT_TEXT: Final = 30
"""Characters: three edits of a shorter text leave too few of its character 3-grams."""

_NAMES_OF_ANSWERS: Final = (
    "repl", "respon", "answer", "resolution", "答复", "回复", "处理结果", "办理结果", "处理意见", "办理意见",
    "办理情况", "处理情况",
)  # fmt: skip
_WORDS_TO_JUDGE: Final = 3
"""A text with fewer words has fewer features than `min_features` asks for."""
_TOO_LITTLE_SHARE: Final = 0.05
"""A few empty rows are usual; from one row in twenty on, people ask why nothing is found for them."""

# A part that is the same in a fifth of the texts and in ten of them is common. A letter that many people send
# has such parts as well, so a text has a frame only if it is more than its common parts.
_GRAM: Final = 5
_COMMON_SHARE: Final = 0.2
_COMMON_TEXTS: Final = 10
_LEAST_FRAME: Final = 20
"""Characters: a greeting (尊敬的领导您好) and a date are shorter, a form or an answer has more."""
_LEAST_OWN: Final = 12
_FRAMED_SHARE: Final = 0.5
"""If fewer texts have a frame, most pairs of rows do not share one."""
_ENDS: Final = 200
"""Characters at the beginning and at the end of a text that are looked at: that is where frames are."""

_ANSWERS: Final = (
    "column {column}: by its name it holds official answers, which share set sentences: rows about different "
    "matters can look alike; compare what people wrote, if the table has it"
)
_FRAME: Final = (
    "column {column}: in {share:.0%} of the sampled texts about {characters:,.0f} characters are the same as "
    "in many other rows, as in a form, or in the opening and closing of an official answer; {consequence}"
)
_LEFT_OUT: Final = "a scan of 200 rows or more leaves such a frame out"
_COMPARED: Final = "these settings compare it, too: `frames = true` leaves it out"
_SHORT: Final = (
    "short texts: half of the sampled rows have {median:,.0f} characters or fewer in the compared columns; "
    "between such texts a name or a number is often the only difference, so look at pairs before you trust "
    "them, and use `within` to keep apart what belongs to different places"
)
_TOO_LITTLE: Final = (
    "{rows} too little text to judge, {share:.0%} of all: of these only exact duplicates are found; "
    "compare another column as well, if one tells more about the matter"
)
_UNIT: Final = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})[^\W_])+")


def sounds_like_answers(column: str) -> bool:
    """Return whether a column holds official answers, by its name."""
    name = column.casefold()
    return any(word in name for word in _NAMES_OF_ANSWERS)


def risks_of_texts(columns: Mapping[str, Sequence[str]], *, leaves_frames_out: bool) -> Iterator[str]:
    """Yield a sentence for each thing that makes wrong pairs likely, or right ones unlikely.

    Args:
        columns: name of each column of the kind `text` that is compared -> its texts in a sample of rows,
            "" for NULL.
        leaves_frames_out: whether the rule reads texts without their frames.
    """
    for name, texts in columns.items():
        if sounds_like_answers(name):
            yield _ANSWERS.format(column=name)
        share, characters = shared_frame(texts)
        if share >= _FRAMED_SHARE:
            yield _FRAME.format(
                column=name,
                share=share,
                characters=characters,
                consequence=_LEFT_OUT if leaves_frames_out else _COMPARED,
            )
    lengths = [length for length in map(_length, zip(*columns.values(), strict=True)) if length]
    if len(lengths) >= ENOUGH_ROWS and median(lengths) < SHORT_TEXT:
        yield _SHORT.format(median=median(lengths))


def risk_of_too_little_text(too_little: int, rows: int, noun: str) -> Iterator[str]:
    """Yield a sentence if many of these rows have too little text to judge.

    Args:
        too_little: how many of them.
        rows: all rows that were looked at.
        noun: what one of them is called.
    """
    if rows >= ENOUGH_ROWS and too_little >= _TOO_LITTLE_SHARE * rows:
        yield _TOO_LITTLE.format(
            rows=counted(too_little, f"{noun} has", f"{noun}s have"), share=too_little / rows
        )


def has_too_little_text(texts: Sequence[str]) -> bool:
    """Return whether a row probably has too little text to judge; a scan knows, because it cuts the words."""
    return sum(map(count_words, texts)) < _WORDS_TO_JUDGE


def shared_frame(texts: Sequence[str]) -> tuple[float, float]:
    """Return the share of texts that have a frame, and the median length of their frames, in characters.

    Common parts are five characters, or five words where there are spaces between words. Equal texts count
    once.
    """
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    if len(distinct) < ENOUGH_ROWS:
        return 0.0, 0.0
    cut = [_units(text) for text in distinct]
    counts = Counter(gram for units in cut for gram in set(_grams(units)))
    least = max(_COMMON_TEXTS, _COMMON_SHARE * len(cut))
    common = {gram for gram, count in counts.items() if count >= least}
    frames = [length for units in cut if (length := _frame_length(units, common))]
    return len(frames) / len(cut), median(frames) if frames else 0.0


def _frame_length(units: Sequence[str], common: set[tuple[str, ...]]) -> int:
    """Return how many characters are in common parts; 0 if these are few, or all that the text has."""
    is_common = [False] * len(units)
    for i, gram in enumerate(_grams(units)):
        if gram in common:
            is_common[i : i + _GRAM] = [True] * _GRAM
    covered = sum(map(len, compress(units, is_common)))
    own = sum(map(len, units)) - covered
    return covered if covered >= _LEAST_FRAME and own >= _LEAST_OWN else 0


def _units(text: str) -> list[str]:
    """Return the ideographs and words at both ends of a text; digits, which differ in every row, as one."""
    ends = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]} {text[-_ENDS:]}"
    return ["0" if unit.isdecimal() else unit for unit in _UNIT.findall(ends.casefold())]


def _grams(units: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(units[i:] for i in range(_GRAM)), strict=False)


def _length(texts: Sequence[str]) -> int:
    return sum(len(text.strip()) for text in texts)
