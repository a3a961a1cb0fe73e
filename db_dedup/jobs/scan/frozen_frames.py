"""Decide by which list of frames a scan builds its answer.

A list is frozen with the recipe that it belongs to. A scan that goes on with a recipe takes the list as it is
stored. A scan of the recipe that serves measures again. Where the new list reads too many texts differently,
the scan builds another recipe beside the one that serves, by the new list.
"""

from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from db_dedup.errors import FrameListError
from db_dedup.flow.text import frames as frame_texts
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.frames import DRIFT_SHARE, FrameSample, measure, take_sample
from db_dedup.records.frames import NO_FRAMES, FrameList, FrameReport
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.frames import StoredFrames, find_frames


@dataclass(frozen=True)
class FrozenFrames:
    """The list of a scan.

    Attributes:
        frames: the list.
        sample_count: rows of the sample that it was measured on, each text once.
        measured: the measurement to store; None if the stored one stays as it is.
        is_other: the list is not that of the recipe which the scan began with, so that it needs a number of
            its own.
        drift: of the sampled rows the share whose texts a list that is measured now reads differently than
            the list of the recipe that serves; None if no such recipe serves.
        waits: the settings ask to keep the list until a scan with `--rebuild`.
        sample: the rows; None if nothing was measured.
    """

    frames: FrameList
    sample_count: int = 0
    measured: StoredFrames | None = None
    is_other: bool = False
    drift: float | None = None
    waits: bool = False
    sample: FrameSample | None = None

    def report(self, rows: int) -> FrameReport:
        """Describe the list; `rows` is the number of rows of which a frame was left out."""
        return FrameReport(
            is_measured=self.sample_count >= frame_texts.LEAST_ROWS,
            columns=self.frames.column_count,
            grams=self.frames.gram_count,
            rows=rows,
            drift=None if self.drift is None else round(self.drift, 4),
            has_drifted=self.drift is not None and self.drift > DRIFT_SHARE,
            waits=self.waits,
        )


NOTHING_FROZEN: Final = FrozenFrames(NO_FRAMES)
"""The list of settings that leave no frames out, and of a scan that has not read or measured its list yet."""


def freeze_frames(
    context: JobContext, store: FingerprintStore, *, serves: bool, is_resumed: bool, rebuild: bool
) -> FrozenFrames:
    """Return the list of a scan; nothing is written.

    Args:
        context: the table.
        store: the table and the recipe that the scan began with.
        serves: that recipe serves.
        is_resumed: it does not, and rows are stored under it.
        rebuild: reuse nothing that is stored.

    Raises:
        FrameListError: the list of the recipe that serves cannot be used.
    """
    if not context.watched.freezes_list:
        return NOTHING_FROZEN
    found = _stored(context, store, is_required=serves and not rebuild)
    if found is None:
        frozen = first_frames(context)
        # Rows that are stored under this number were read by a list that is lost.
        return replace(frozen, is_other=serves or is_resumed)
    if serves:
        return frames_again(context, found, rebuild=rebuild)
    if not rebuild:
        return FrozenFrames(found.frames, found.sample_count)
    frozen = first_frames(context)
    return replace(frozen, is_other=frozen.frames != found.frames)


def first_frames(context: JobContext) -> FrozenFrames:
    """Return the list of a table by settings that no list is stored for."""
    sample = take_sample(context)
    measured = measure(context, sample)
    return FrozenFrames(measured.frames, measured.sample_count, measured, sample=sample)


def frames_again(
    context: JobContext, found: StoredFrames, snapshot: Connection | None = None, *, rebuild: bool = False
) -> FrozenFrames:
    """Measure the frames of a recipe that serves, and decide whether a scan keeps its list.

    Args:
        context: the table.
        found: the stored list.
        snapshot: to read the rows through; None for new connections.
        rebuild: replace the list by any other.
    """
    sample = take_sample(context, snapshot)
    new = measure(context, sample, NO_FRAMES if rebuild else found.frames)
    drift = sample.differing_share(found.frames, new.frames)
    waits = context.watched.frame_drift == "wait"
    has_drifted = drift > DRIFT_SHARE or _is_first_order(found, new)
    if new.frames != found.frames and (rebuild or (has_drifted and not waits)):
        return FrozenFrames(new.frames, new.sample_count, new, is_other=True, drift=drift, sample=sample)
    kept = replace(new, frames=found.frames)
    is_stored = replace(found, measured_at=None) == kept
    return FrozenFrames(
        found.frames, new.sample_count, None if is_stored else kept, drift=drift, waits=waits, sample=sample
    )


def _is_first_order(found: StoredFrames, new: StoredFrames) -> bool:
    """Return whether common 3-grams were measured for the first time: there were too few rows before.

    An order that was measured is kept as long as the recipe: another one would find the same pairs.
    """
    has_order = found.frames.common_grams.size > 0
    return not has_order and new.sample_count >= frame_texts.LEAST_ROWS and new.frames.common_grams.size > 0


def _stored(context: JobContext, store: FingerprintStore, *, is_required: bool) -> StoredFrames | None:
    name = context.watched.name
    with context.engine.connect() as connection:
        try:
            found = find_frames(connection, context.tables, store.table_id, store.recipe, name)
        except FrameListError:
            if is_required:
                raise
            return None
    if found is None and is_required:
        raise FrameListError(name, "missing")
    return found
