"""Judge the product's own rules by labelled pairs, and find the setting that decides most like a method."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import process_time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import PRESETS, WatchedTable
from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.measured_table import MeasuredTable, measure_pairs
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.text.segment import SEGMENTERS as PRODUCT_SEGMENTERS
from db_dedup.jobs.review.calibration.choosing import best_setting
from db_dedup.jobs.review.calibration.counting import is_found, score
from db_dedup.jobs.review.calibration.evidence import Evidence
from db_dedup.jobs.review.comparison.labelled_rows import LabelledRows
from db_dedup.methods.comparison import score_found
from db_dedup.records import PairSetting, SourceRow
from db_dedup.records.comparison import Combination, NearestSetting, RuleTrial
from db_dedup.records.frames import NO_FRAMES
from db_dedup.records.recipe import Recipe

_TERM_FREQUENCY_OF: Final[Mapping[str, str]] = {"none": "set", "frequency": "raw"}
"""Features -> the setting that weighs words in the same way."""


def judge_rules(given: LabelledRows) -> Iterator[RuleTrial]:
    """Yield the results of the table's settings, if the rows have a table, and of each preset."""
    if given.is_table:
        yield _judged(given, None, given.watched)
    for name in PRESETS:
        yield _judged(given, name, _with_preset(given.watched, name))


def find_nearest_setting(
    given: LabelledRows, combination: Combination, decisions: NDArray[np.bool_]
) -> NearestSetting | None:
    """Return the setting whose decisions on the pairs agree most, by F1, with those of a combination.

    The rule keeps what decides how a text is read, but for the segmenter and the weights of the combination,
    if the product has them; it uses these only where they bring it nearer. Of equally near settings it is the
    one that changes least.

    Args:
        given: p labelled pairs.
        combination: which made the decisions.
        decisions: bool[p], the pairs that it calls duplicates.
    """
    if not decisions.any():
        return None
    found: list[tuple[float, WatchedTable, PairSetting, NDArray[np.bool_]]] = []
    for watched in _readings(given.watched, combination):
        evidence = _evidence(given, watched, decisions)
        setting = best_setting(evidence, watched.setting)
        found.append((score(evidence, setting).f1, watched, setting, is_found(evidence, setting)))
    _, watched, setting, are_found = max(found, key=lambda each: each[0])
    labels = np.array(list(given.pairs.values()), np.bool_)
    return NearestSetting(
        watched.rule.segmenter,
        watched.rule.term_frequency,
        setting,
        score_found(are_found, labels, _threshold(setting)),
        int(np.count_nonzero(are_found == decisions)),
        _changes(given.watched, watched, setting),
    )


def _readings(base: WatchedTable, combination: Combination) -> list[WatchedTable]:
    """Return the settings as they are, and with segmenter and weights of the combination."""
    words: dict[str, object] = {}
    # A user dictionary belongs to its segmenter.
    if combination.segmenter in PRODUCT_SEGMENTERS and not base.user_words:
        words["segmenter"] = combination.segmenter
    if combination.features in _TERM_FREQUENCY_OF:
        words["term_frequency"] = _TERM_FREQUENCY_OF[combination.features]
    other = base.model_copy(update=words)
    return [base] if other.rule == base.rule else [base, other]


def _changes(
    base: WatchedTable, watched: WatchedTable, setting: PairSetting
) -> dict[str, bool | float | str]:
    names = ["radius", "sketches", "similarity"]
    if setting.similarity != NO_SIMILARITY:
        names.append("threshold")
    before, after = base.rule, watched.rule
    changes: dict[str, bool | float | str] = {
        name: getattr(after, name)
        for name in ("segmenter", "term_frequency")
        if getattr(after, name) != getattr(before, name)
    }
    old = base.setting
    return changes | {n: getattr(setting, n) for n in names if getattr(setting, n) != getattr(old, n)}


def _judged(given: LabelledRows, name: str | None, watched: WatchedTable) -> RuleTrial:
    labels = np.array(list(given.pairs.values()), np.bool_)
    evidence = _evidence(given, watched, labels)
    setting = watched.setting
    feature_seconds, comparison_seconds = _seconds(given, watched)
    return RuleTrial(
        name,
        watched.rule.segmenter,
        watched.rule.term_frequency,
        setting,
        score_found(is_found(evidence, setting), labels, _threshold(setting)),
        feature_seconds,
        comparison_seconds,
    )


def _threshold(setting: PairSetting) -> float:
    """Return what decides at last: the similarity, or the radius if no similarity is checked."""
    return setting.radius if setting.similarity == NO_SIMILARITY else setting.threshold


def _seconds(given: LabelledRows, watched: WatchedTable) -> tuple[float, float]:
    """Return the CPU seconds to fingerprint the rows and to compare the pairs, as a scan does both."""
    rule, maker = Rule(watched.setting), Fingerprinter(_recipe(given, watched))
    places = _places(given)

    def done(rows: Sequence[SourceRow], left: NDArray[np.int32], right: NDArray[np.int32]) -> list[float]:
        within = [row.within for row in rows]
        times = [process_time()]
        compared = maker.fingerprint([row.values for row in rows], within).compared(within)
        times.append(process_time())
        rule.confirm(compared, left, right)
        return [*times, process_time()]

    # Once with one row, so that dictionaries are loaded and kernels compiled.
    done(given.rows[:1], np.zeros(1, np.int32), np.zeros(1, np.int32))
    times = done(given.rows, np.ascontiguousarray(places[:, 0]), np.ascontiguousarray(places[:, 1]))
    return times[1] - times[0], times[2] - times[1]


def _evidence(given: LabelledRows, watched: WatchedTable, labels: NDArray[np.bool_]) -> Evidence:
    """Return the labelled pairs, each with everything that a rule can need of it."""
    places = _places(given)
    recipe = replace(_recipe(given, watched), long_grams=watched.rule.long_grams)
    kinds_by = watched.setting if watched.exclude_kinds else None
    with MeasuredTable(recipe, kinds_by, watched.rule.short_threshold) as table:
        table.add_page(given.rows)
        rows = table.rows()
        measured = measure_pairs(rows, places[:, 0], places[:, 1]).measured
        lengths = np.minimum(rows.lengths[places[:, 0]], rows.lengths[places[:, 1]])
    count = labels.size
    return Evidence(
        labels.astype(np.int8),
        np.ones(count, np.int64),
        np.arange(count, dtype=np.int64),
        measured,
        lengths,
        is_complete=True,
    )


def _places(given: LabelledRows) -> NDArray[np.int32]:
    return np.array(list(given.pairs), np.int32).reshape(-1, 2)


def _recipe(given: LabelledRows, watched: WatchedTable) -> Recipe:
    """Return the recipe; a list of frames is of texts of one normaliser."""
    if watched.rule.normaliser != given.watched.rule.normaliser:
        return replace(watched.recipe, frames=NO_FRAMES)
    # The order of prefixes counts without frames, too.
    frames = given.frames if watched.rule.frames else replace(given.frames, grams=())
    return replace(watched.recipe, frames=frames)


def _with_preset(watched: WatchedTable, preset: str) -> WatchedTable:
    """Return the settings with every field of the rule as the preset has it."""
    return watched.model_copy(update={"preset": None, **PRESETS[preset].model_dump()})
