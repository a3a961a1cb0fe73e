"""From one setting to another: which pairs come and go, and how many of them are right."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from db_dedup.amounts import counted
from db_dedup.flow.candidates import MAX_RADIUS
from db_dedup.jobs.calibration.counting import is_found, wilson
from db_dedup.jobs.calibration.evidence import Evidence
from db_dedup.records import PairSetting, SettingStep, Share


def step(evidence: Evidence, before: PairSetting, after: PairSetting) -> SettingStep:
    """What changes from one setting to another."""
    old, new = is_found(evidence, before), is_found(evidence, after)
    added, wrong = _about(evidence, new & ~old, 0)
    dropped, right = _about(evidence, old & ~new, 1)
    parts = []
    if added:
        parts.append(f"adds {counted(added, 'pair')}, {_words(wrong, 'wrong')}")
    if dropped:
        parts.append(f"drops {counted(dropped, 'pair')}, {_words(right, 'right')}")
    words = f"{change(before, after)} {' and '.join(parts) or 'changes nothing'}"
    return SettingStep(after, words, added, wrong, dropped, right)


def neighbours(setting: PairSetting) -> Iterator[PairSetting]:
    """Settings that differ in one thing."""
    for radius in (0, *range(3, MAX_RADIUS + 1, 2)):
        if radius != setting.radius:
            yield replace(setting, radius=radius)
    yield replace(setting, bands=not setting.bands)
    if setting.similarity == "none":
        return
    for by in (-0.1, -0.05, 0.05, 0.1):
        threshold = round(setting.threshold + by, 3)
        if 0 < threshold <= 1:
            yield replace(setting, threshold=threshold)


def change(before: PairSetting, after: PairSetting) -> str:
    """What differs, as words."""
    parts = [f"radius {before.radius} to {after.radius}"] if before.radius != after.radius else []
    if before.bands != after.bands:
        parts.append("bands on" if after.bands else "bands off")
    if before.similarity != after.similarity:
        parts.append(f"{_test(before)} to {_test(after)}")
    elif before.threshold != after.threshold:
        parts.append(f"threshold {before.threshold:g} to {after.threshold:g}")
    return ", ".join(parts) or "no change"


def _test(setting: PairSetting) -> str:
    if setting.similarity == "none":
        return "no look at the text"
    return f"{setting.similarity} {setting.threshold:g}"


def _about(evidence: Evidence, chosen: NDArray[np.bool_], label: int) -> tuple[int, Share]:
    """(how many pairs these are, about how many of them have this label, by those that have one)."""
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
        return "none of them labelled"
    number, low, high = (f"{value:,.0f}" for value in (about.value, about.low, about.high))
    if low == high:
        return f"{number} of them {what}"
    return f"about {number} of them {what} ({low} to {high})"
