"""What a comparison of methods found, in words and rows, for the terminal and for the HTML page."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, get_args

from db_dedup.config import DEFAULT_PRESET
from db_dedup.plurals import counted
from db_dedup.present.calibration_words import setting_words, table_header
from db_dedup.present.label_words import repeated_lines
from db_dedup.present.visible import one_line
from db_dedup.records import Combination, Comparison, NearestSetting, RuleTrial, ThresholdScore, Trial
from db_dedup.records.comparison import Part
from db_dedup.translation import Phrase, tr

PARTS: Final[tuple[Part, ...]] = get_args(Part)
COLUMNS: Final = (
    Phrase("step"),
    *PARTS,
    Phrase("threshold"),
    Phrase("precision"),
    Phrase("recall"),
    "F1",
    Phrase("right"),
    Phrase("wrong"),
    Phrase("missed"),
    Phrase("feature CPU s"),
    Phrase("comparison CPU s"),
)
_COUNTS: Final = slice(8, 11)
SHORT_COLUMNS: Final = (
    Phrase("at"),
    Phrase("prec."),
    Phrase("recall"),
    "F1",
    Phrase("feat. s"),
    Phrase("comp. s"),
)
"""Beside the names, for a terminal, which is narrow: without the counts of pairs."""
TIMES: Final = 2
"""The last columns, which may be left out."""
SHORT_COLUMNS_EXPLAINED: Final = Phrase(
    "at: threshold; prec.: precision; feat. s, comp. s: CPU seconds to make features, to compare the pairs"
)
SCORE_COLUMNS: Final = tuple(name.replace(" ", "_").lower() for name in COLUMNS)
"""The names of the columns for programs."""
_STEP_TITLES: Final = {
    "alone": Phrase("Each step alone"),
    "cross": Phrase("Two steps crosswise"),
    "together": Phrase("All steps together"),
}
_PLURALS: Final = {
    "segmenter": Phrase("segmenters"),
    "features": Phrase("features"),
    "method": Phrase("methods"),
}
_PART_NAMES: Final[dict[Part, Phrase]] = {
    "segmenter": Phrase("segmenter"),
    "features": Phrase("features"),
    "method": Phrase("method"),
}
RULES_TITLE: Final = Phrase("Rules of db_dedup; their features are the setting term_frequency")
RULES: Final = "product"
"""In place of a step: a rule of the product."""


def trial_row(trial: Trial) -> tuple[Any, ...]:
    """Return the values of the columns for one combination."""
    each = trial.combination
    return (
        trial.step,
        each.segmenter or "",
        each.features,
        each.method,
        *_values(trial.best, trial.feature_seconds, trial.comparison_seconds),
    )


def rule_row(rule: RuleTrial) -> tuple[Any, ...]:
    """Return the same for a rule of the product."""
    return (
        RULES,
        rule.segmenter,
        rule.term_frequency,
        rule_name(rule),
        *_values(rule.score, rule.feature_seconds, rule.comparison_seconds),
    )


def all_rows(found: Comparison) -> Iterator[tuple[Any, ...]]:
    """Yield the rules of the product, then all combinations that ran, in the order of the steps."""
    yield from map(rule_row, found.rules)
    yield from map(trial_row, found.trials)


def in_cells(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the values of a row as people read them."""
    *names, threshold, precision, recall, f1, right, wrong, missed, feature, comparison = row
    shares = ("-" if value is None else f"{value:.3f}" for value in (precision, recall, f1))
    counts = (f"{value:,}" for value in (right, wrong, missed))
    return (*names, f"{threshold:g}", *shares, *counts, f"{feature:.3f}", f"{comparison:.4f}")


def in_short_cells(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the names, then the same for the columns of a terminal."""
    cells = in_cells(row)
    return (*cells[1 : _COUNTS.start], *cells[_COUNTS.stop :])


class TrialTable(NamedTuple):
    """Combinations that belong in one table, the best first.

    Attributes:
        title: a heading.
        parts: what differs in them.
        trials: at least one.
    """

    title: str
    parts: tuple[Part, ...]
    trials: list[Trial]


def trial_tables(found: Comparison) -> Iterator[TrialTable]:
    """Yield the combinations step by step: of the step `alone` a table for each list."""
    for step, title in _STEP_TITLES.items():
        trials = sorted((each for each in found.trials if each.step == step), key=lambda t: -t.best.f1)
        if step == "alone":
            yield from _tables_alone(title, trials, found.first)
        elif trials:
            yield TrialTable(tr(title), PARTS, trials)


def _tables_alone(title: str, trials: list[Trial], first: Combination) -> Iterator[TrialTable]:
    """Yield a table for each list that has several names; the first combination is in all of them."""
    by_part = {part: [each for each in trials if _varies(part, each.combination, first)] for part in PARTS}
    chosen = [part for part in PARTS if len(by_part[part]) > 1]
    if not chosen and trials:
        yield TrialTable(tr(title), PARTS, trials)
    for part in chosen:
        fixed = tr(" and ").join(
            f"{tr(_PART_NAMES[other])} {name}"
            for other in PARTS
            if other != part and (name := getattr(first, other))
        )
        yield TrialTable(
            tr("{title}: {several}, with {fixed}", title=title, several=_PLURALS[part], fixed=fixed),
            (part,),
            by_part[part],
        )


def _varies(part: Part, each: Combination, first: Combination) -> bool:
    """Return whether a combination differs from the first one in one part at most; none is any segmenter."""
    others = ((getattr(each, other), getattr(first, other)) for other in PARTS if other != part)
    return all(one == other or None in (one, other) for one, other in others)


def rule_name(rule: RuleTrial) -> str:
    """Return what a rule of the product is called."""
    return tr("settings of the table") if rule.name is None else tr("preset {name}", name=rule.name)


def combination_words(each: Combination) -> str:
    """Return the names of a combination on one line."""
    words = tr("{method} of {features}", method=each.method, features=each.features)
    return (
        tr("{words}, segmenter {segmenter}", words=words, segmenter=each.segmenter)
        if each.segmenter
        else words
    )


def summary_lines(found: Comparison) -> Iterator[str]:
    """Describe the labels and the combinations."""
    labelled = tr(
        "{pairs} of {texts}, {duplicates:,} of them duplicates",
        pairs=counted(found.pairs, "labelled pair"),
        texts=counted(found.texts, "text"),
        duplicates=found.duplicates,
    )
    yield labelled if found.table is None else f"{one_line(found.table)}: {labelled}"
    if found.not_there:
        yield tr(
            "{labels} out: rows that are not there, have no text, or have changed since",
            labels=counted(found.not_there, "label was left", "labels were left"),
        )
    yield from repeated_lines(found.repeated)
    yield tr(
        "{tried}; each at the threshold with the best F1", tried=counted(len(found.trials), "combination")
    )


def skipped_lines(found: Comparison) -> Iterator[str]:
    """Say which segmenters, features or methods could not run, those with the same reason together."""
    for (part, reason), count in Counter((each.part, each.reason) for each in found.skipped).items():
        alike = [each.combination for each in found.skipped if (each.part, each.reason) == (part, reason)]
        yield tr(
            "skipped {part} {names} ({combinations}): {reason}",
            part=_PART_NAMES[part],
            names=tr(", ").join(dict.fromkeys(getattr(each, part) for each in alike)),
            combinations=counted(count, "combination"),
            reason=reason,
        )


def closing_lines(found: Comparison) -> Iterator[str]:
    """Name the best method, how far the product is from it, and the setting that is nearest to it."""
    best = found.best
    yield tr(
        "Best on these labels: {combination}, {direction}: {score}.",
        combination=combination_words(best.combination),
        direction=_at_threshold(best),
        score=_score_words(best.best),
    )
    if len(found.trials) > 1:
        yield tr(
            "It was chosen by the labels that judge it, out of {trials}: on other pairs expect less.",
            trials=counted(len(found.trials), "combination"),
        )
    rule = _our_rule(found)
    ours = tr("The {name}: {score}", name=rule_name(rule), score=_score_words(rule.score))
    difference = best.best.f1 - rule.score.f1
    if difference > 0:
        yield tr(
            "{ours}; its F1 is {difference:.3f} below the best method.", ours=ours, difference=difference
        )
    else:
        yield tr("{ours}; no method here has a better F1.", ours=ours)
    if found.nearest is not None:
        yield from _nearest_lines(found, found.nearest, rule)


def _nearest_lines(found: Comparison, nearest: NearestSetting, rule: RuleTrial) -> Iterator[str]:
    words = tr(
        "decides {agreeing:,} of {pairs:,} pairs as it does: {score}",
        agreeing=nearest.agreeing,
        pairs=found.pairs,
        score=_score_words(nearest.score),
    )
    if not nearest.changes:
        now = tr("that of the table") if found.table else tr("the preset {preset}", preset=DEFAULT_PRESET)
        yield tr("Nearest setting of db_dedup: {now}, which {words}.", now=now, words=words)
        return
    described = setting_words(nearest.setting)
    yield tr(
        "Nearest setting of db_dedup: {described}, which {words}. For dedup.toml:",
        described=described,
        words=words,
    )
    yield from toml_lines(found)
    if nearest.score.f1 <= rule.score.f1:
        name = rule_name(rule)
        yield tr(
            "On these labels it does no better than the {name}: there is no reason to change.", name=name
        )


def toml_lines(found: Comparison) -> list[str]:
    """Return the nearest setting as lines of `dedup.toml`."""
    if found.nearest is None:
        return []
    lines = [table_header(found.table or "NAME")]
    if found.table is None:
        lines.append(f'preset = "{DEFAULT_PRESET}"')
    return lines + [f"{name} = {json.dumps(value)}" for name, value in found.nearest.changes.items()]


def _our_rule(found: Comparison) -> RuleTrial:
    """Return the table's settings; without a table the best preset."""
    return found.rules[0] if found.table else max(found.rules, key=lambda each: each.score.f1)


def _at_threshold(trial: Trial) -> str:
    if trial.is_distance:
        return tr("at most {threshold:g} bits", threshold=trial.best.threshold)
    return tr("at least {threshold:g}", threshold=trial.best.threshold)


def _score_words(score: ThresholdScore) -> str:
    precision = "-" if score.precision is None else f"{score.precision:.3f}"
    return tr(
        "F1 {f1:.3f} (precision {precision}, recall {recall:.3f})",
        f1=score.f1,
        precision=precision,
        recall=score.recall,
    )


def _values(score: ThresholdScore, feature_seconds: float, comparison_seconds: float) -> tuple[Any, ...]:
    return (
        score.threshold,
        score.precision,
        score.recall,
        score.f1,
        score.right,
        score.wrong,
        score.missed,
        feature_seconds,
        comparison_seconds,
    )
