"""Rows that show the frames of a list, read live: no text of theirs is stored."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from db_dedup.flow.text.frames import frame_spans
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.frames import FrameSample
from db_dedup.records.frames import FrameExample, FrameList

MOST_EXAMPLES: Final = 3
"""Rows that are shown of a column."""
_LOOKED_AT: Final = 500

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
    parts = [{text[a:b] for a, b in own} for text, own in zip(texts, spans, strict=True)]
    counts = Counter(part for own in parts for part in own)
    for _ in range(MOST_EXAMPLES):
        weights = [sum(counts[part] for part in own) for own in parts]
        best = max(range(len(texts)), key=weights.__getitem__, default=0)
        if not weights or not weights[best]:
            return
        for part in parts[best]:
            counts[part] = 0
        yield FrameExample(sample.row_keys[best], name, _cut(texts[best], spans[best]))


def _cut(text: str, spans: _Spans) -> tuple[tuple[str, bool], ...]:
    parts: list[tuple[str, bool]] = []
    last = 0
    for start, end in spans:
        parts += [(text[last:start], False), (text[start:end], True)]
        last = end
    parts.append((text[last:], False))
    return tuple((part, is_frame) for part, is_frame in parts if part)
