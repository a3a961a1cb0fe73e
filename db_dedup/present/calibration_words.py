"""What a calibration found, in words, for the terminal and for the HTML page."""

import json
import re
from collections.abc import Iterator
from typing import Final

from db_dedup.plurals import counted
from db_dedup.present.label_words import repeated_lines
from db_dedup.present.visible import one_line
from db_dedup.records import Calibration, LengthScore, PairSetting, Share
from db_dedup.translation import Phrase, tr

SCORE_COLUMNS: Final = (
    "",
    Phrase("right"),
    Phrase("wrong"),
    Phrase("missed"),
    Phrase("not labelled"),
    Phrase("precision"),
    Phrase("recall"),
    "F1",
)
"""Heads of the columns of a table of scores. The first column says what each row is about and has no head."""

_SETTINGS: Final = {
    (True, True): "radius {radius} with sketches, {measure} of at least {threshold:g}",
    (True, False): "radius {radius} with sketches, no similarity check",
    (False, True): "radius {radius} without sketches, {measure} of at least {threshold:g}",
    (False, False): "radius {radius} without sketches, no similarity check",
}
"""By whether there are sketches, and whether the similarity is checked."""


def setting_words(setting: PairSetting) -> str:
    """Return a setting on one line."""
    template = _SETTINGS[setting.sketches, setting.similarity != "none"]
    return tr(template, radius=setting.radius, measure=setting.similarity, threshold=setting.threshold)


def share_words(share: Share) -> str:
    """Return a share with its interval."""
    if share.value is None:
        return "-"
    return tr("{share:.3f} ({low:.3f} to {high:.3f})", share=share.value, low=share.low, high=share.high)


def length_words(each: LengthScore) -> str:
    """Return a range of lengths, in characters."""
    if each.to is None:
        return tr("{start} and more", start=each.start)
    return tr("{start} to {end}", start=each.start, end=each.to - 1)


def summary_lines(found: Calibration) -> Iterator[str]:
    """Describe the labels."""
    yield tr(
        "{table}: {labelled_pairs}, {duplicates:,} of them duplicates, in {groups}",
        table=one_line(found.table),
        labelled_pairs=counted(found.labelled, "labelled pair"),
        duplicates=found.duplicates,
        groups=counted(found.groups, "group"),
    )
    if found.not_there:
        yield tr(
            "{labels} rows or texts that are not there",
            labels=counted(found.not_there, "label names", "labels name"),
        )
    yield from repeated_lines(found.repeated)
    if found.unlabelled_are_wrong:
        yield tr("a pair without a label counts as wrong")
    yield tr("intervals are of 95 %: Wilson's for shares, a bootstrap over groups for F1")


def proposal_lines(found: Calibration) -> Iterator[str]:
    """Describe the steps, the gain and the proposal."""
    yield tr("One change at a time:")
    yield from (f"  {tr(step.words)}" for step in found.steps)
    if found.gain.value is None:
        groups = counted(found.groups, "group of labelled pairs is", "groups of labelled pairs are")
        yield tr("{groups} too few to estimate how a choice does on other pairs.", groups=groups)
        yield from (
            [tr("The best on these labels:"), *toml_lines(found)] if found.proposed != found.now else []
        )
        return
    yield tr(
        "F1 now {now}; of a setting chosen in five folds over groups {chosen}, a gain of {gain}",
        now=share_words(found.now_f1),
        chosen=share_words(found.cross_validated_f1),
        gain=share_words(found.gain),
    )
    if found.is_better:
        yield tr("The labels support the proposed setting:")
        yield from toml_lines(found)
    elif found.proposed == found.now:
        yield tr("No other setting does better on these labels: keep what there is.")
    else:
        yield tr(
            "The labels do not show that another setting does better: keep what there is. To try it anyway:"
        )
        yield from toml_lines(found)


def toml_lines(found: Calibration) -> list[str]:
    """Return the proposed setting as lines of `dedup.toml`."""
    setting = found.proposed.setting
    lines = [
        table_header(found.table),
        f"radius = {setting.radius}",
        f"sketches = {'true' if setting.sketches else 'false'}",
        f'similarity = "{setting.similarity}"',
    ]
    return lines if setting.similarity == "none" else [*lines, f"threshold = {setting.threshold:g}"]


def table_header(table: str) -> str:
    """Return the line of `dedup.toml` that begins the settings of a table."""
    plain = re.fullmatch(r"[A-Za-z0-9_-]+", table)
    return f"[tables.{table if plain else json.dumps(table, ensure_ascii=False)}]"
