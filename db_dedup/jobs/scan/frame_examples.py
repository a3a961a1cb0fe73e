"""Rows that show the frames of a list, read live: no text of theirs is stored."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.text.frames import frame_grams_of, frame_spans
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.frames import FrameSample
from db_dedup.records.frames import FrameExample, FrameList

MOST_EXAMPLES: Final = 3
"""Rows that are shown of a column."""
_LOOKED_AT: Final = 500
_NEW_SHARE: Final = 0.25
"""A row is another example if so much of its frame was in no example before. With less, it is the same form
with a set phrase or two, which would take the place of another form."""
_ENOUGH_WEIGHT: Final = 0.9
"""Of the rows with so much of the most frequent frame, the shortest one shows it best."""

_Spans = list[tuple[int, int]]


def frame_examples(context: JobContext, sample: FrameSample, frames: FrameList) -> tuple[FrameExample, ...]:
    """Return rows of a sample in which the most frequent frames are seen, each frame once if possible."""
    return tuple(
        example
        for i, column in enumerate(context.watched.recipe.columns)
        if frames.of_column(i).size
        for example in _of_column(column.name, i, sample, frames)
    )


def _of_column(name: str, column: int, sample: FrameSample, frames: FrameList) -> Iterator[FrameExample]:
    texts = sample.columns[column][:_LOOKED_AT]
    spans = [frame_spans(text, column, frames) for text in texts]
    grams = {i: frame_grams_of(texts[i], column, frames) for i, own in enumerate(spans) if own}
    counts = np.zeros(frames.of_column(column).size, np.int64)
    for own in grams.values():
        counts[own] += 1
    is_new = np.ones(counts.size, np.bool_)
    for _ in range(MOST_EXAMPLES):
        weights = _weights(grams, counts, is_new)
        if not weights:
            return
        enough = _ENOUGH_WEIGHT * max(weights.values())
        best = min((i for i, weight in weights.items() if weight >= enough), key=lambda i: len(texts[i]))
        is_new[grams[best]] = False
        yield FrameExample(sample.row_keys[best], name, _cut(texts[best], spans[best]))


def _weights(
    grams: dict[int, NDArray[np.int64]], counts: NDArray[np.int64], is_new: NDArray[np.bool_]
) -> dict[int, int]:
    """Return place of a row -> in how many rows the grams of its frame are that no example has shown, summed.

    Rows whose frame was shown are left out.
    """
    new = {i: own[is_new[own]] for i, own in grams.items()}
    return {i: int(counts[own].sum()) for i, own in new.items() if own.size > _NEW_SHARE * grams[i].size}


def _cut(text: str, spans: _Spans) -> tuple[tuple[str, bool], ...]:
    parts: list[tuple[str, bool]] = []
    last = 0
    for start, end in spans:
        parts += [(text[last:start], False), (text[start:end], True)]
        last = end
    parts.append((text[last:], False))
    return tuple((part, is_frame) for part, is_frame in parts if part)
