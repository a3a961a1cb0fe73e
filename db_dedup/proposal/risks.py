"""Warn of what makes results worse: official answers, a frame that most rows share, short texts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from db_dedup.flow.text.frames import frame_spans, measure_frames
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.plurals import counted
from db_dedup.proposal.names import words_of_name
from db_dedup.proposal.profile import count_words
from db_dedup.records.recipe import RecipeColumn
from db_dedup.translation import Phrase

ENOUGH_ROWS: Final = 20
"""No warning is based on fewer texts, because what they share may be chance."""
SHORT_TEXT: Final = 30
"""Characters: three edits of a shorter text leave too few of its character 3-grams."""

_WORDS_OF_ANSWERS: Final = ("reply", "replies", "response", "answer", "resolution")
"""Words of a name begin so: replycontent does, and replaced_by and responsible_office do not."""
_IDEOGRAPHS_OF_ANSWERS: Final = (
    "答复", "回复", "处理结果", "办理结果", "处理意见", "办理意见", "办理情况", "处理情况",
)  # fmt: skip
_WORDS_TO_JUDGE: Final = 3
"""A text with fewer words has fewer features than `min_features` asks for."""
_TOO_LITTLE_SHARE: Final = 0.05
"""A few empty rows are usual; from one row in twenty on, people ask why nothing is found for them."""

_FRAMED_SHARE: Final = 0.5
"""If fewer texts have a frame, most pairs of rows do not share one."""
_COLUMN: Final = [RecipeColumn("", "text", 1)]

_ANSWERS: Final = (
    "column {column}: by its name it holds official answers, which share set sentences: rows about different "
    "matters can look alike; compare what people wrote, if the table has it"
)
_FRAME: Final = (
    "column {column}: in {share:.0%} of the sampled texts about {characters:,.0f} characters are the same as "
    "in many other rows, as in a form, or in the opening and closing of an official answer; {consequence}"
)
_LEFT_OUT: Final = Phrase("a scan of 200 rows or more leaves such a frame out")
_COMPARED: Final = Phrase("these settings compare it, too: `frames = true` leaves it out")
_SHORT: Final = (
    "short texts: half of the sampled rows have {median:,.0f} characters or fewer in the compared columns; "
    "between such texts a name or a number is often the only difference, so look at pairs before you trust "
    "them, and use `within` to keep apart what belongs to different places"
)
_TOO_LITTLE: Final = (
    "{rows} too little text to judge, {share:.0%} of all: of these only exact duplicates are found; "
    "compare another column as well, if one tells more about the matter"
)


def sounds_like_answers(column: str) -> bool:
    """Return whether a column holds official answers, by the words of its name."""
    is_named = any(word.startswith(_WORDS_OF_ANSWERS) for word in words_of_name(column))
    return is_named or any(word in column for word in _IDEOGRAPHS_OF_ANSWERS)


def risks_of_texts(columns: Mapping[str, Sequence[str]], *, leaves_frames_out: bool) -> Iterator[str]:
    """Yield a sentence for each thing that makes wrong pairs likely, or right ones unlikely.

    Args:
        columns: name of each column of the kind `text` that is compared -> its texts in a sample of rows,
            "" for NULL.
        leaves_frames_out: whether the rule reads texts without their frames.
    """
    for name, texts in columns.items():
        if sounds_like_answers(name):
            yield Phrase(_ANSWERS, column=name)
        share, characters = shared_frame(texts)
        if share >= _FRAMED_SHARE:
            yield Phrase(
                _FRAME,
                column=name,
                share=share,
                characters=characters,
                consequence=_LEFT_OUT if leaves_frames_out else _COMPARED,
            )
    lengths = [length for length in map(_length, zip(*columns.values(), strict=True)) if length]
    if len(lengths) >= ENOUGH_ROWS and median(lengths) < SHORT_TEXT:
        yield Phrase(_SHORT, median=median(lengths))


def risk_of_too_little_text(too_little: int, rows: int, *, is_sample: bool = False) -> Iterator[str]:
    """Yield a sentence if many of these rows have too little text to judge.

    Args:
        too_little: how many of them.
        rows: all rows that were looked at.
        is_sample: whether they are a sample of the table.
    """
    if rows >= ENOUGH_ROWS and too_little >= _TOO_LITTLE_SHARE * rows:
        if is_sample:
            having = counted(too_little, "sampled row has", "sampled rows have")
        else:
            having = counted(too_little, "row has", "rows have")
        yield Phrase(_TOO_LITTLE, rows=having, share=too_little / rows)


def has_too_little_text(texts: Sequence[str]) -> bool:
    """Return whether a row probably has too little text to judge; a scan knows, because it cuts the words."""
    return sum(map(count_words, texts)) < _WORDS_TO_JUDGE


def shared_frame(texts: Sequence[str]) -> tuple[float, float]:
    """Return the share of texts that have a frame, and the median length of their frames, in characters.

    A frame is what a scan would leave out. It is looked for in fewer rows, too, as people should know of a
    form around the rows of a table that is too small for a scan to leave it out. Equal texts count once in
    the share.
    """
    counts = Counter(text for text in normalise_batch(texts) if text)
    distinct = list(counts)
    frames = measure_frames(_COLUMN, [distinct], least_rows=ENOUGH_ROWS, repeats=list(counts.values()))
    lengths = [sum(end - start for start, end in frame_spans(text, 0, frames)) for text in distinct]
    framed = [length for length in lengths if length]
    return (len(framed) / len(distinct), median(framed)) if framed else (0.0, 0.0)


def _length(texts: Sequence[str]) -> int:
    return sum(len(text.strip()) for text in texts)
