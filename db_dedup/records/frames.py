"""What a scan measures on a sample and freezes in the recipe: the grams of frames, and the common 3-grams."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import ConfigError


@dataclass(frozen=True, eq=False)
class FrameList:
    """Which grams belong to frames, column by column, and which 3-grams are common.

    Attributes:
        grams: for each watched column uint64[g], ascending; empty for a column without frames, and for value
            columns. No entry at all if no column has a frame.
        common_grams: uint32[c], the upper halves of the hashes of the common 3-grams, from the rarest on:
            the order of prefixes (`flow.candidates.short_texts`). Without them, the order is the same for
            all tables.
    """

    grams: tuple[NDArray[np.uint64], ...] = ()
    common_grams: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))

    @property
    def has_frames(self) -> bool:
        """Whether some column has a frame; the list may also have common 3-grams alone."""
        return any(column.size for column in self.grams)

    @property
    def column_count(self) -> int:
        """How many columns have frames."""
        return sum(column.size > 0 for column in self.grams)

    @property
    def gram_count(self) -> int:
        """How many grams the columns have together."""
        return sum(column.size for column in self.grams)

    @property
    def digest(self) -> str:
        """SHA-256 of the list, in hex."""
        return hashlib.sha256(self.as_text().encode()).hexdigest()

    def of_column(self, column: int) -> NDArray[np.uint64]:
        """Return the grams of one column."""
        return self.grams[column] if self.grams else np.empty(0, np.uint64)

    def has_same_frames(self, other: Self) -> bool:
        """Return whether both lists leave the same out of every text."""
        return self._columns() == other._columns()

    def as_text(self) -> str:
        """Return the list as JSON, as it is stored."""
        columns = self._columns()
        if not self.common_grams.size:
            return json.dumps(columns)
        return json.dumps({"columns": columns, "common": self.common_grams.astype(">u4").tobytes().hex()})

    def _columns(self) -> list[list[str]]:
        columns: Sequence[NDArray[np.uint64]] = self.grams if self.has_frames else ()
        return [[f"{gram:016x}" for gram in column.tolist()] for column in columns]

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the list that `as_text` has written.

        Raises:
            ConfigError: the text is no such list.
        """
        try:
            found = json.loads(text)
            found = found if isinstance(found, dict) else {"columns": found, "common": ""}
            columns = [[int(gram, 16) for gram in column] for column in found["columns"]]
            common = np.frombuffer(bytes.fromhex(found["common"]), ">u4").astype(np.uint32)
            return cls(tuple(np.array(column, np.uint64) for column in columns), common)
        except (ValueError, TypeError, OverflowError, KeyError):
            raise ConfigError("the stored list of frames is damaged: run a scan with --rebuild") from None

    def __eq__(self, other: object) -> bool:
        """Return whether both lists have the same grams of frames and the same common 3-grams."""
        return isinstance(other, FrameList) and self.as_text() == other.as_text()

    def __hash__(self) -> int:
        """Return the hash of the list's text."""
        return hash(self.as_text())


CUT: Final = "\x1f"
"""What replaces a frame between two parts of a text: a separator that no normalised text holds."""

NO_FRAMES: Final = FrameList()
"""No column has a frame."""


@dataclass(frozen=True)
class FrameExample:
    """A text of a row as it is now, cut where a frame begins or ends.

    Attributes:
        parts: (a part of the text, whether it is left out as a frame), in their order.
    """

    row_key: str
    column: str
    parts: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class FrameStatus:
    """The frozen list of the recipe in use.

    Attributes:
        state: "measured"; "not measured" as long as the table has too few rows; or "damaged" or "missing",
            which `scan --rebuild` repairs.
        columns: how many columns have frames.
        grams: of the list.
        rows: rows of which the last scan left a frame out; None if it did not count them.
        drift: what the last scan found, as in `FrameReport`.
        has_drifted: whether the last scan kept a list that has drifted, which `--rebuild` replaces.
        waits: as in `FrameReport`.
        measured_rows: rows of the table when the list was measured.
        measured_at: UTC.
    """

    state: str
    columns: int = 0
    grams: int = 0
    rows: int | None = None
    drift: float | None = None
    has_drifted: bool = False
    waits: bool = False
    measured_rows: int | None = None
    measured_at: datetime | None = None


@dataclass(frozen=True)
class FrameReport:
    """What a scan left out of texts.

    Attributes:
        is_measured: False if the table has too few rows to look for frames.
        columns: how many columns have frames.
        grams: of the frozen list.
        rows: rows of which a frame was left out.
        drift: the share of the sampled rows from whose texts a newly measured list leaves out something else
            than the list in use; None if no list is in use.
        has_drifted: whether that share is so large that the list should be replaced.
        waits: whether the settings ask to keep the list until a scan with `--rebuild`.
    """

    is_measured: bool
    columns: int
    grams: int
    rows: int
    drift: float | None = None
    has_drifted: bool = False
    waits: bool = False
