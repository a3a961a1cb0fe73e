"""The step from one setting to another: which pairs it adds and drops, and how many of them are right."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.blocks import MAX_RADIUS
from db_dedup.jobs.review.calibration.counting import is_found, wilson
from db_dedup.jobs.review.calibration.evidence import Evidence
from db_dedup.plurals import counted
from db_dedup.records import PairSetting, SettingStep, Share
from db_dedup.translation import Phrase, joined

_ADDS: Final = "adds {pairs}, {wrong}"
_DROPS: Final = "drops {pairs}, {right}"
_THRESHOLDS: Final = "threshold {before:g} to {after:g}"
_SO_MANY: Final = "{number} of them {what}"
_ABOUT_SO_MANY: Final = "about {number} of them {what} ({low} to {high})"


def step(evidence: Evidence, before: PairSetting, after: PairSetting) -> SettingStep:
    """Return what changes from one setting to another."""
    old, new = is_found(evidence, before), is_found(evidence, after)
    added, wrong = _about(evidence, new & ~old, 0)
    dropped, right = _about(evidence, old & ~new, 1)
    parts = []
    if added:
        parts.append(Phrase(_ADDS, pairs=counted(added, "pair"), wrong=_words(wrong, Phrase("wrong"))))
    if dropped:
        parts.append(Phrase(_DROPS, pairs=counted(dropped, "pair"), right=_words(right, Phrase("right"))))
    effect = joined(" and ", parts) if parts else Phrase("changes nothing")
    words = Phrase("{change} {effect}", change=change(before, after), effect=effect)
    return SettingStep(after, words, added, wrong, dropped, right)


def neighbours(setting: PairSetting) -> Iterator[PairSetting]:
    """Yield the settings that differ from this one in one thing."""
    for radius in (0, *range(3, MAX_RADIUS + 1, 2)):
        if radius != setting.radius:
            yield replace(setting, radius=radius)
    yield replace(setting, sketches=not setting.sketches)
    if setting.similarity == "none":
        return
    for by in (-0.1, -0.05, 0.05, 0.1):
        threshold = round(setting.threshold + by, 3)
        if 0 < threshold <= 1:
            yield replace(setting, threshold=threshold)


def change(before: PairSetting, after: PairSetting) -> str:
    """Return what differs, in words."""
    parts = []
    if before.radius != after.radius:
        parts.append(Phrase("radius {before} to {after}", before=before.radius, after=after.radius))
    if before.sketches != after.sketches:
        parts.append(Phrase("sketches on") if after.sketches else Phrase("sketches off"))
    if before.similarity != after.similarity:
        parts.append(Phrase("{before} to {after}", before=_test(before), after=_test(after)))
    elif before.threshold != after.threshold:
        parts.append(Phrase(_THRESHOLDS, before=before.threshold, after=after.threshold))
    return joined(", ", parts) if parts else Phrase("no change")


def _test(setting: PairSetting) -> str:
    if setting.similarity == "none":
        return Phrase("no similarity check")
    return f"{setting.similarity} {setting.threshold:g}"


def _about(evidence: Evidence, chosen: NDArray[np.bool_], label: int) -> tuple[int, Share]:
    """Return how many pairs these are, and an estimate, by the labelled ones, of how many have this label."""
    weights, labels = evidence.weights[chosen], evidence.labels[chosen]
    total, judged = int(weights.sum()), int(weights[labels >= 0].sum())
    hits = int(weights[labels == label].sum())
    share, rest = wilson(hits, judged), total - judged
    if share.value is None:
        return total, Share(None, 0.0, float(total))
    if not rest:
        return total, Share(float(hits), float(hits), float(hits))
    return total, Share(hits + rest * share.value, hits + rest * share.low, hits + rest * share.high)


def _words(about: Share, what: str) -> str:
    if about.value is None:
        return Phrase("none of them labelled")
    number, low, high = (f"{value:,.0f}" for value in (about.value, about.low, about.high))
    template = _SO_MANY if low == high else _ABOUT_SO_MANY
    return Phrase(template, number=number, what=what, low=low, high=high)
