"""A calibration as one page of HTML that needs no other file."""

from collections.abc import Iterable
from html import escape

from db_dedup.config import DEFAULT_PRESET, PRESETS
from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.present.calibration_words import (
    SCORE_COLUMNS,
    length_words,
    proposal_lines,
    setting_words,
    share_words,
    summary_lines,
    toml_lines,
)
from db_dedup.present.html_page import heading, page, paragraph, table
from db_dedup.present.plots import Axis, Line, Point, figure, share_axis, tenth_below
from db_dedup.records import Calibration, SettingScore, Share
from db_dedup.translation import Phrase, tr


def calibration_page(found: Calibration) -> str:
    """Return the page; it holds counts and settings, no key and no text of a row."""
    title = tr("Calibration of {table}", table=found.table)
    parts = [
        *(f"<p>{escape(line)}</p>" for line in summary_lines(found)),
        heading("Current and proposed settings"),
        paragraph("Now: {setting}.", setting=setting_words(found.now.setting)),
        paragraph("Proposed: {setting}.", setting=setting_words(found.proposed.setting)),
        table(SCORE_COLUMNS, [(tr("now"), *_cells(found.now)), (tr("proposed"), *_cells(found.proposed))]),
        *(f"<p>{escape(line)}</p>" for line in proposal_lines(found) if line not in toml_lines(found)),
        f"<pre>{escape(chr(10).join(toml_lines(found)))}</pre>",
        heading("By radius"),
        _radius_plot(found),
        heading("By threshold"),
        _threshold_plot(found),
        heading("Precision against recall"),
        _tradeoff_plot(found),
        heading("By length of the shorter text"),
        _length_plot(found),
        *_length_tables(found),
    ]
    return page(title, parts)


def _radius_plot(found: Calibration) -> str:
    lines = []
    for with_sketches in (False, True):
        scores = [each for each in found.by_radius if each.setting.sketches is with_sketches]
        which = tr("sketches" if with_sketches else "no sketches")
        lines.append(Line(tr("precision, {which}", which=which), _points(scores, "radius", "precision")))
        lines.append(Line(tr("recall, {which}", which=which), _points(scores, "radius", "recall")))
    axis = Axis(tr("radius (bits)"), 0, 11, [(i, str(i)) for i in range(12)])
    title = tr("Precision and recall by radius")
    return figure(title, axis, share_axis(tr("share")), lines, found.now.setting.radius)


def _threshold_plot(found: Calibration) -> str:
    measure = found.now.setting.similarity
    if measure == NO_SIMILARITY:
        measure = PRESETS[DEFAULT_PRESET].similarity
    scores = [each for each in found.by_threshold if each.setting.similarity == measure]
    lines = [Line(tr(kind), _points(scores, "threshold", kind)) for kind in ("precision", "recall")]
    mark = found.now.setting.threshold if found.now.setting.similarity == measure else None
    title = tr("Precision and recall by threshold of {measure}", measure=measure)
    return figure(
        title, share_axis(tr("threshold of {measure}", measure=measure)), share_axis(tr("share")), lines, mark
    )


def _tradeoff_plot(found: Calibration) -> str:
    lines = []
    for measure in dict.fromkeys(each.setting.similarity for each in found.by_threshold):
        scores = [each for each in found.by_threshold if each.setting.similarity == measure]
        points = [
            Point(each.recall.value, each.precision.value)
            for each in scores
            if each.recall.value is not None and each.precision.value is not None
        ]
        lines.append(Line(measure, points))
    lines += _marked(found)
    seen = [point for line in lines for point in line.points]
    start_x, start_y = (tenth_below(values) for values in ([p.x for p in seen], [p.y for p in seen]))
    axes = share_axis(tr("recall"), start_x), share_axis(tr("precision"), start_y)
    return figure(tr("Precision against recall"), *axes, lines)


def _marked(found: Calibration) -> Iterable[Line]:
    """Yield the current and the proposed setting; only one point if they are the same."""
    marked = {tr("now"): found.now, tr("proposed"): found.proposed}
    if found.now.setting == found.proposed.setting:
        marked = {tr("now and proposed"): found.now}
    for name, each in marked.items():
        if each.recall.value is not None and each.precision.value is not None:
            yield Line(name, [Point(each.recall.value, each.precision.value)], is_joined=False)


def _length_plot(found: Calibration) -> str:
    names = [length_words(each) for each in found.by_length[0]]
    lines = []
    for kind, shift in (("precision", -0.08), ("recall", 0.08)):
        points = [_point(i + shift, getattr(each.score, kind)) for i, each in enumerate(found.by_length[0])]
        lines.append(Line(tr(kind), [point for point in points if point], is_joined=False))
    axis = Axis(tr("characters"), -0.5, max(len(names), 1) - 0.5, list(enumerate(names)))
    return figure(tr("Precision and recall by length"), axis, share_axis(tr("share")), lines)


def _length_tables(found: Calibration) -> Iterable[str]:
    for name, scores in zip((Phrase("Now"), Phrase("Proposed")), found.by_length, strict=True):
        rows = [(length_words(each), *_cells(each.score)) for each in scores]
        yield heading(name, 3) + table((Phrase("characters"), *SCORE_COLUMNS[1:]), rows)


def _points(scores: Iterable[SettingScore], field: str, kind: str) -> list[Point]:
    points = (_point(getattr(each.setting, field), getattr(each, kind)) for each in scores)
    return [point for point in points if point]


def _point(x: float, share: Share) -> Point | None:
    return None if share.value is None else Point(x, share.value, share.low, share.high)


def _cells(score: SettingScore) -> tuple[str, ...]:
    unlabelled = "?" if score.unlabelled is None else f"{score.unlabelled:,}"
    counts = (f"{score.right:,}", f"{score.wrong:,}", f"{score.missed:,}", unlabelled)
    return (*counts, share_words(score.precision), share_words(score.recall), f"{score.f1:.3f}")
