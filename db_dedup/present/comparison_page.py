"""A comparison of methods as one page of HTML that needs no other file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import ceil
from typing import Any, Final

from db_dedup.plurals import counted
from db_dedup.present.comparison_words import (
    COLUMNS,
    PARTS,
    RULES_TITLE,
    closing_lines,
    combination_words,
    in_cells,
    rule_name,
    rule_row,
    skipped_lines,
    summary_lines,
    toml_lines,
    trial_row,
    trial_tables,
)
from db_dedup.present.html_page import heading, page, paragraph, table
from db_dedup.present.plots import Axis, Line, Point, figure, share_axis, tenth_below
from db_dedup.records import Comparison, ThresholdScore, Trial
from db_dedup.records.comparison import Part
from db_dedup.translation import tr

_KINDS: Final = ("precision", "recall", "f1")
_SHOWN: Final = 25
"""So many rows of a table are seen at first."""


def comparison_page(found: Comparison) -> str:
    """Return the page; it holds counts and names, no key and no text of a row."""
    title = (
        tr("Comparison of methods on {table}", table=found.table)
        if found.table
        else tr("Comparison of methods")
    )
    return page(title, _parts(found))


def _parts(found: Comparison) -> Iterator[str]:
    yield from _paragraphs(summary_lines(found))
    if found.skipped:
        skipped = tr("{combinations} could not run", combinations=counted(len(found.skipped), "combination"))
        yield f'<p>{escape(skipped)}: <a href="#skipped">{escape(tr("reasons"))}</a></p>'
    yield heading("Result")
    toml = toml_lines(found)
    yield from _paragraphs(line for line in closing_lines(found) if line not in toml)
    if found.nearest is not None and found.nearest.changes:
        yield f"<pre>{escape(chr(10).join(toml))}</pre>"
    yield heading(RULES_TITLE)
    yield _table(PARTS, map(rule_row, found.rules))
    yield from _plots(found)
    for title, parts, trials in trial_tables(found):
        yield f"<h2>{escape(title)}</h2>"
        yield _table(parts, map(trial_row, trials[:_SHOWN]))
        if len(trials) > _SHOWN:
            more = tr("{count:,} more", count=len(trials) - _SHOWN)
            yield f"<details><summary>{escape(more)}</summary>"
            yield _table(parts, map(trial_row, trials[_SHOWN:]))
            yield "</details>"
    if found.skipped:
        yield heading("Skipped", name="skipped")
        yield from _paragraphs(skipped_lines(found))


def _plots(found: Comparison) -> Iterator[str]:
    yield heading("Thresholds of the best combination")
    yield from _paragraphs([combination_words(found.best.combination)])
    lines = [Line("F1" if kind == "f1" else tr(kind), _points(found.best, kind)) for kind in _KINDS]
    title = tr("Precision, recall and F1 by threshold")
    yield figure(title, _axis([found.best]), share_axis(tr("share")), lines, found.best.best.threshold)
    best_of: dict[str, Trial] = {}
    for trial in sorted(found.trials, key=lambda each: -each.best.f1):
        best_of.setdefault(trial.combination.method, trial)
    for is_distance, values in ((False, tr("similarities")), (True, tr("distances"))):
        trials = [trial for trial in best_of.values() if trial.is_distance is is_distance]
        if trials:
            yield heading("F1 by threshold: {values}", values=values)
            yield paragraph("Each method with the segmenter and the features that suit it best.")
            lines = [Line(combination_words(trial.combination), _points(trial, "f1")) for trial in trials]
            yield figure(
                tr("F1 by threshold of {values}", values=values), _axis(trials), share_axis("F1"), lines
            )
    yield from _tradeoffs(found, best_of)


def _tradeoffs(found: Comparison, best_of: Mapping[str, Trial]) -> Iterator[str]:
    """Yield precision against recall, near the best thresholds and the rules of the product."""
    scores = [*(rule.score for rule in found.rules), *(trial.best for trial in best_of.values())]
    marked = [score for score in scores if score.f1]
    least_recall = tenth_below(score.recall for score in marked)
    least_precision = tenth_below(score.precision or 0.0 for score in marked)
    yield heading("Precision against recall")
    yield paragraph(
        "Each method at all its thresholds, with the segmenter and the features that suit it best. "
        "The shapes that no line joins are the rules of db_dedup. Thresholds with a recall below "
        "{recall:.1f} or a precision below {precision:.1f} are not shown.",
        recall=least_recall,
        precision=least_precision,
    )

    def shown(scores: Iterable[ThresholdScore]) -> list[Point]:
        return [
            Point(each.recall, each.precision)
            for each in scores
            if each.precision is not None
            and each.recall >= least_recall
            and each.precision >= least_precision
        ]

    lines = [Line(name, shown(trial.curve)) for name, trial in best_of.items()]
    names: dict[tuple[Point, ...], list[str]] = {}
    for rule in found.rules:
        names.setdefault(tuple(shown([rule.score])), []).append(rule_name(rule))
    lines += [Line(tr(", ").join(alike), point, is_joined=False) for point, alike in names.items() if point]
    axes = share_axis(tr("recall"), least_recall), share_axis(tr("precision"), least_precision)
    yield figure(tr("Precision against recall"), *axes, lines)


def _table(parts: Sequence[Part], rows: Iterable[tuple[Any, ...]]) -> str:
    """Return a table of the names of these parts and the scores; the heading names the step."""
    places = [COLUMNS.index(part) for part in parts]
    scores = 1 + len(PARTS)
    cells = map(in_cells, rows)
    chosen = [(*(row[place] for place in places), *row[scores:]) for row in cells]
    return table((*parts, *COLUMNS[scores:]), chosen, names=len(parts))


def _points(trial: Trial, kind: str) -> list[Point]:
    values = ((score.threshold, getattr(score, kind)) for score in trial.curve)
    return [Point(threshold, value) for threshold, value in values if value is not None]


def _axis(trials: Sequence[Trial]) -> Axis:
    """Return an axis that has room for all thresholds."""
    if not trials[0].is_distance:
        return share_axis(tr("threshold: at least this similarity"))
    most = max(score.threshold for trial in trials for score in trial.curve)
    end = max(1, ceil(most))
    step = max(1, end // 10)
    ticks = [(bits, str(bits)) for bits in range(0, end + 1, step)]
    return Axis(tr("threshold: at most so many bits"), 0, end, ticks)


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    yield from (f"<p>{escape(line)}</p>" for line in lines)
