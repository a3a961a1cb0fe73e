"""What a calibration found, in words: for the terminal and for the page."""

import json
import re
from collections.abc import Iterator

from db_dedup.amounts import counted
from db_dedup.cli.side_by_side import one_line
from db_dedup.records import Calibration, LengthScore, PairSetting, Share


def setting_words(setting: PairSetting) -> str:
    """A setting on one line."""
    bands = "with bands" if setting.bands else "without bands"
    measure = "no look at the text"
    if setting.similarity != "none":
        measure = f"{setting.similarity} of at least {setting.threshold:g}"
    return f"radius {setting.radius} {bands}, {measure}"


def share_words(share: Share) -> str:
    """A share with its interval."""
    if share.value is None:
        return "-"
    return f"{share.value:.3f} ({share.low:.3f} to {share.high:.3f})"


def length_words(each: LengthScore) -> str:
    """A length band."""
    return f"{each.start} and more" if each.to is None else f"{each.start} to {each.to - 1}"


def summary_lines(found: Calibration) -> Iterator[str]:
    """What the labels are."""
    yield (
        f"{one_line(found.table)}: {counted(found.labelled, 'labelled pair')}, "
        f"{found.duplicates:,} of them duplicates, in {counted(found.groups, 'group')}"
    )
    if found.not_there:
        yield f"{counted(found.not_there, 'label names', 'labels name')} rows or texts that are not there"
    if found.unlabelled_are_wrong:
        yield "a pair without a label counts as wrong"
    yield "intervals are of 95 %: Wilson's for shares, a bootstrap over groups for F1"


def proposal_lines(found: Calibration) -> Iterator[str]:
    """What to make of it."""
    yield "One change at a time:"
    yield from (f"  {step.words}" for step in found.steps)
    if found.gain.value is None:
        groups = counted(found.groups, "group of labelled pairs is", "groups of labelled pairs are")
        yield f"{groups} too few to tell how a choice does on others."
        yield from ["The best on these labels:", *toml_lines(found)] if found.proposed != found.now else []
        return
    yield (
        f"F1 now {share_words(found.now_f1)}; of a setting chosen in five folds over groups "
        f"{share_words(found.cross_validated_f1)}, a gain of {share_words(found.gain)}"
    )
    if found.is_better:
        yield "The labels speak for the proposed setting:"
        yield from toml_lines(found)
    elif found.proposed == found.now:
        yield "No other setting does better on these labels: keep what there is."
    else:
        yield "The labels do not show that another setting does better: keep what there is. To try it anyway:"
        yield from toml_lines(found)


def toml_lines(found: Calibration) -> list[str]:
    """The proposed setting as it stands in `dedup.toml`."""
    setting = found.proposed.setting
    plain = re.fullmatch(r"[A-Za-z0-9_-]+", found.table)
    title = found.table if plain else json.dumps(found.table, ensure_ascii=False)
    lines = [
        f"[tables.{title}]",
        f"radius = {setting.radius}",
        f"bands = {'true' if setting.bands else 'false'}",
        f'similarity = "{setting.similarity}"',
    ]
    return lines if setting.similarity == "none" else [*lines, f"threshold = {setting.threshold:g}"]
