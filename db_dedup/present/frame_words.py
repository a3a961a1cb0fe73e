"""Frames in words: what was left out of texts, how far it has drifted, and rows with their frames marked."""

from collections.abc import Iterable, Iterator
from typing import Final

from db_dedup.plurals import counted
from db_dedup.present.visible import one_line, visible
from db_dedup.records import FrameReport
from db_dedup.records.frames import FrameExample, FrameStatus
from db_dedup.translation import STATUS, language, named, tr

_NOT_MEASURED: Final = "frames: not measured, the table has too few different texts"
_NONE: Final = "frames: none found"
_FOUND: Final = "frames: left out of {rows}; the list has {grams} of {columns}"
_SHARE: Final = "the frames have changed: {share:.1%} of the sampled rows would be compared by other texts"
_WAITS: Final = "{share}; `db-dedup scan {table} --rebuild` compares by the new frames"
_TO_BUILD: Final = "{share}; the next scan builds a new answer by the new frames beside the stored one"
_BUILT: Final = (
    "the frames had changed: {share:.1%} of the sampled rows are compared by other texts now, "
    "and the answer was built anew"
)
_MENDS: Final = "run `db-dedup scan {table} --rebuild`: worker, check, explain and verify wait for it"
_EXAMPLES: Final = "rows with frames; what is in brackets is left out before texts are compared:"
_EXAMPLE: Final = "row {key}, {column}: {text}"
_LONGEST: Final = 200


def frame_lines(frames: FrameReport) -> Iterator[str]:
    """Describe what was left out of texts."""
    if not frames.is_measured:
        yield tr(_NOT_MEASURED)
    elif not frames.grams:
        yield tr(_NONE)
    else:
        yield tr(
            _FOUND,
            rows=counted(frames.rows, "row"),
            grams=counted(frames.grams, "gram"),
            columns=counted(frames.columns, "column"),
        )


def drift_lines(table: str, frames: FrameReport, *, is_written: bool) -> Iterator[str]:
    """Say that the frames have changed; nothing if they have not changed enough to matter.

    Args:
        table: the watched table.
        frames: of a scan, or of one that wrote nothing.
        is_written: a scan has written its answer.
    """
    if not frames.has_drifted or frames.drift is None:
        return
    share = tr(_SHARE, share=frames.drift)
    if frames.waits:
        yield tr(_WAITS, share=share, table=table)
    elif is_written:
        yield tr(_BUILT, share=frames.drift)
    else:
        yield tr(_TO_BUILD, share=share)


def example_lines(examples: Iterable[FrameExample]) -> Iterator[str]:
    """Show rows with their frames in brackets, below a line that says so; nothing if there are no rows."""
    for number, example in enumerate(examples):
        if number == 0:
            yield tr(_EXAMPLES)
        yield tr(
            _EXAMPLE, key=visible(example.row_key), column=visible(example.column), text=marked_text(example)
        )


def marked_text(example: FrameExample) -> str:
    """Return the text of a row with its frames in brackets."""
    return "".join(_part(part, is_frame=is_frame) for part, is_frame in example.parts)


def state_lines(table: str, frames: FrameStatus | None) -> Iterator[tuple[str, str]]:
    """Describe the stored list of a table, under its name in JSON."""
    if frames is None:
        return
    yield named(STATUS, "frames", language()), _state(frames)
    if frames.state in ("damaged", "missing"):
        yield "", tr(_MENDS, table=table)
    if frames.has_drifted and frames.drift is not None:
        share = tr(_SHARE, share=frames.drift)
        yield "", tr(_WAITS, share=share, table=table)


def _state(frames: FrameStatus) -> str:
    if frames.state != "measured":
        return named(STATUS, frames.state, language())
    if not frames.grams:
        return tr("none found")
    rows = "" if frames.rows is None else tr(", left out of {rows}", rows=counted(frames.rows, "row"))
    return tr(
        "{grams} of {columns}{rows}",
        grams=counted(frames.grams, "gram"),
        columns=counted(frames.columns, "column"),
        rows=rows,
    )


def _part(text: str, *, is_frame: bool) -> str:
    if is_frame:
        return f"[{one_line(text)}]"
    if len(text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{text[:half]} … {text[-half:]}"
    return one_line(text)
