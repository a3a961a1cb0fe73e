"""What `large` measured: kept in a CSV file, and drawn by step."""

import csv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.plot import log_log_svg
from benchmarks.processes import Measured

COLUMNS = ("wall_seconds", "cpu_seconds", "pss_megabytes", "anonymous_megabytes", "file_megabytes")
"""What is known of a step; of a part of a step, of a check and of a view only the first."""

_KEY = ("texts", "database", "rows", "step")

Key = tuple[str, str, int, str]
"""Texts, database, rows, step."""


@dataclass
class LargeFigures:
    """The figures of one table as they are measured; printed, and written after each step if there is a file.

    Attributes:
        texts: what the texts are.
        database: its name.
        rows: how many.
        file: holds those of all tables; None to print them only.
    """

    texts: str
    database: str
    rows: int
    file: Path | None

    def tell(self, step: str, taken: Measured) -> None:
        """Keep and print what a command took."""
        memory = f"{taken.proportional:>8.0f} {taken.anonymous:>8.0f} {taken.files:>8.0f}"
        print(f"{step:<32} {taken.wall:>10.1f} {taken.cpu:>9.1f} {memory}", flush=True)
        self._keep(step, taken.wall, taken.cpu, taken.proportional, taken.anonymous, taken.files)

    def tell_seconds(self, step: str, seconds: float) -> None:
        """Keep and print the time of what is no command."""
        print(f"{step:<32} {seconds:>10.4f}", flush=True)
        self._keep(step, seconds)

    def _keep(self, step: str, *figures: float) -> None:
        if self.file is None:
            return
        all_figures = read_figures(self.file)
        all_figures[self.texts, self.database, self.rows, step] = [f"{figure:.4g}" for figure in figures]
        with self.file.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            writer.writerow([*_KEY, *COLUMNS])
            for key in sorted(all_figures):
                found = all_figures[key]
                writer.writerow([*key, *found, *[""] * (len(COLUMNS) - len(found))])


def read_figures(file: Path | None) -> dict[Key, list[str]]:
    """Return what was measured so far."""
    if file is None or not file.exists():
        return {}
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {
        (row["texts"], row["database"], int(row["rows"]), row["step"]): [
            row[name] for name in COLUMNS if row[name]
        ]
        for row in rows
    }


def draw(figures: LargeFigures, title: str, plot: Path) -> None:
    """Draw the seconds of each step of these texts by rows."""
    lines: dict[str, dict[int, float]] = {}
    for (texts, database, rows, step), found in read_figures(figures.file).items():
        if (texts, database) == (figures.texts, figures.database) and float(found[0]) > 0:
            lines.setdefault(step, {})[rows] = float(found[0])
    plot.write_text(log_log_svg(lines, title, "rows", "seconds"), encoding="utf-8")
    print(f"drawn in {plot}")
