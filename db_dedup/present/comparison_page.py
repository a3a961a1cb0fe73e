"""A comparison of methods as one page of HTML that needs no other file."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import ceil
from typing import Any, Final

from db_dedup.present.comparison_words import (
    COLUMNS,
    STEP_TITLES,
    closing_lines,
    combination_words,
    in_cells,
    rule_row,
    skipped_lines,
    summary_lines,
    toml_lines,
    trial_row,
)
from db_dedup.present.html_page import page, table
from db_dedup.present.plots import Axis, Line, Point, share_axis, svg
from db_dedup.records import Comparison, ThresholdScore, Trial

_KINDS: Final = ("precision", "recall", "f1")


def comparison_page(found: Comparison) -> str:
    """Return the page; it holds counts and names, no key and no text of a row."""
    title = f"Comparison of methods on {found.table}" if found.table else "Comparison of methods"
    return page(title, _parts(found))


def _parts(found: Comparison) -> Iterator[str]:
    yield from _paragraphs([*summary_lines(found), *skipped_lines(found)])
    yield "<h2>Result</h2>"
    toml = toml_lines(found)
    yield from _paragraphs([line for line in closing_lines(found) if line not in toml])
    if found.nearest is not None and found.nearest.changes:
        yield f"<pre>{escape(chr(10).join(toml))}</pre>"
    yield _table(map(rule_row, found.rules))
    yield from _plots(found)
    for step, heading in STEP_TITLES.items():
        trials = sorted((t for t in found.trials if t.step == step), key=lambda t: -t.best.f1)
        if trials:
            yield f"<h2>{escape(heading)}</h2>"
            yield _table(map(trial_row, trials))


def _plots(found: Comparison) -> Iterator[str]:
    yield "<h2>Thresholds of the best combination</h2>"
    yield from _paragraphs([combination_words(found.best.combination)])
    lines = [Line("F1" if kind == "f1" else kind, _points(found.best, kind)) for kind in _KINDS]
    title = "Precision, recall and F1 by threshold"
    yield svg(title, _axis([found.best]), share_axis("share"), lines, found.best.best.threshold)
    best_of: dict[str, Trial] = {}
    for trial in sorted(found.trials, key=lambda each: -each.best.f1):
        best_of.setdefault(trial.combination.method, trial)
    for is_distance, heading in ((False, "similarities"), (True, "distances")):
        trials = [trial for trial in best_of.values() if trial.is_distance is is_distance]
        if trials:
            yield f"<h2>F1 by threshold: {heading}</h2>"
            yield "<p>Each method with the segmenter and the features that suit it best.</p>"
            lines = [Line(trial.combination.method, _points(trial, "f1")) for trial in trials]
            yield svg(f"F1 by threshold of {heading}", _axis(trials), share_axis("F1"), lines)
            yield "<ul>"
            yield from (f"<li>{escape(combination_words(trial.combination))}</li>" for trial in trials)
            yield "</ul>"
    yield "<h2>Precision against recall</h2>"
    yield "<p>Each method at all its thresholds, as above; the rings are the rules of db_dedup.</p>"
    lines = [Line(name, _tradeoff(trial.curve)) for name, trial in best_of.items()]
    for rule in found.rules:
        name = "table" if rule.name is None else rule.name
        lines.append(Line(name, _tradeoff([rule.score]), is_joined=False))
    yield svg("Precision against recall", share_axis("recall"), share_axis("precision"), lines)


def _table(rows: Iterable[tuple[Any, ...]]) -> str:
    """Return a table without the step, which the heading names."""
    return table(COLUMNS[1:], [in_cells(row)[1:] for row in rows])


def _points(trial: Trial, kind: str) -> list[Point]:
    values = ((score.threshold, getattr(score, kind)) for score in trial.curve)
    return [Point(threshold, value) for threshold, value in values if value is not None]


def _tradeoff(curve: Sequence[ThresholdScore]) -> list[Point]:
    return [Point(each.recall, each.precision) for each in curve if each.precision is not None]


def _axis(trials: Sequence[Trial]) -> Axis:
    """Return an axis that has room for all thresholds."""
    if not trials[0].is_distance:
        return share_axis("threshold: at least this similarity")
    most = max(score.threshold for trial in trials for score in trial.curve)
    end = max(1, ceil(most))
    step = max(1, end // 10)
    ticks = [(bits, str(bits)) for bits in range(0, end + 1, step)]
    return Axis("threshold: at most so many bits", 0, end, ticks)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"<p>{escape(line)}</p>" for line in lines)
