"""How long each part of a scan took, by the steps that it reports."""

from time import monotonic
from typing import Final

from db_dedup.progress import Progress

_READING: Final = ("rows of a sample", "keys", "fingerprints", "texts of candidates")
_MATCHING: Final = ("candidates", "matching", "pairs")
_WRITING: Final = ("writing", "removing")


class StepTimer:
    """Passes the steps of a job on to another progress, and adds up their seconds."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._started = self._step_started = monotonic()
        self._step: str | None = None
        self._seconds: dict[str, float] = {}

    def start(self, step: str, total: int | None) -> None:
        """Begin a step."""
        self._end_step()
        self._step, self._step_started = step, monotonic()
        self._progress.start(step, total)

    def advance(self, amount: int) -> None:
        """Pass it on."""
        self._progress.advance(amount)

    def finish(self) -> None:
        """End the current step."""
        self._end_step()
        self._progress.finish()

    def seconds(self) -> float:
        """Return the seconds since the timer was made."""
        return round(monotonic() - self._started, 3)

    def parts(self) -> dict[str, float]:
        """Return the seconds of each part; they add up to `seconds`, apart from rounding."""
        self._end_step()
        parts = {"reading": 0.0, "matching": 0.0, "writing": 0.0}
        for step, seconds in self._seconds.items():
            if part := _part_of(step):
                parts[part] += seconds
        other = monotonic() - self._started - sum(parts.values())
        return {name: round(seconds, 3) for name, seconds in (parts | {"other": other}).items()}

    def _end_step(self) -> None:
        if self._step is not None:
            passed = monotonic() - self._step_started
            self._seconds[self._step] = self._seconds.get(self._step, 0.0) + passed
            self._step = None


def _part_of(step: str) -> str | None:
    if step in _READING:
        return "reading"
    if step in _MATCHING:
        return "matching"
    return "writing" if step.startswith(_WRITING) else None
