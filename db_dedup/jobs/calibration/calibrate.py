"""Everything that labelled pairs say of a table's settings, in one pass over its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from db_dedup.amounts import counted
from db_dedup.config import Rule
from db_dedup.engines.embedded.wide_table import MEASURES, WideRows, WideTable
from db_dedup.errors import ConfigError
from db_dedup.flow.candidates import MAX_RADIUS
from db_dedup.jobs.calibration.choosing import best_setting, cross_validate
from db_dedup.jobs.calibration.counting import bootstrap, counts_by_group, is_found, score, score_by_length
from db_dedup.jobs.calibration.evidence import Evidence, RowPair, gather, numbered
from db_dedup.jobs.calibration.steps import neighbours, step
from db_dedup.jobs.context import JobContext
from db_dedup.records import Calibration, PairLabel, PairSetting, SettingScore, Share
from db_dedup.store.verdicts import StoredVerdict

_AT_MOST_PAIRS: Final = 3_000_000
FEWEST_GROUPS: Final = 10
"""With fewer groups of labelled pairs nothing can be said of how a setting would do on others."""

_COARSE: Final = tuple(round(i / 20, 2) for i in range(1, 20))


def calibrate(
    context: JobContext,
    labels: Iterable[PairLabel] | None,
    verdicts: Sequence[StoredVerdict],
    *,
    unlabelled_are_wrong: bool = False,
) -> Calibration:
    """Judge settings by labelled pairs; nothing is written.

    Args:
        context: the table.
        labels: by row key; None to judge by the verdicts.
        verdicts: by the digests of texts.
        unlabelled_are_wrong: the labels name every duplicate there is.

    Raises:
        ConfigError: no labelled duplicate is among the rows, or there are too many unlabelled pairs to count
            them all as wrong.
    """
    with WideTable(context.watched) as wide:
        context.progress.start("fingerprints", None)
        for page in context.source.pages(context.source_engine):
            wide.add_page(page)
            context.progress.advance(len(page))
        context.progress.finish()
        rows = wide.rows()
        labelled, not_there = _by_key(rows, labels) if labels is not None else _by_text(rows, verdicts)
        if not any(labelled.values()):
            raise ConfigError(
                f"no labelled duplicate to judge by: {counted(len(labelled), 'label')} on rows that "
                f"are there, {not_there:,} on rows that are not; "
                f"`db-dedup label {context.watched.name}` asks for some"
            )
        evidence = gather(rows, labelled, _AT_MOST_PAIRS)
    if unlabelled_are_wrong:
        if not evidence.is_complete:
            raise ConfigError(f"more than {_AT_MOST_PAIRS:,} pairs have no label: too many to be all wrong")
        evidence = evidence.with_unlabelled_wrong()
    found = _judged(evidence, setting_of(context.watched.rule))
    return replace(
        found,
        table=context.watched.name,
        labelled=len(labelled),
        duplicates=sum(labelled.values()),
        not_there=not_there,
        unlabelled_are_wrong=unlabelled_are_wrong,
    )


def setting_of(rule: Rule) -> PairSetting:
    """The part of a rule that decides which pairs are found."""
    return PairSetting(rule.radius, rule.bands, rule.similarity, rule.threshold)


def _judged(evidence: Evidence, now: PairSetting) -> Calibration:
    evidence = numbered(evidence)
    groups = int(evidence.groups.max()) + 1
    proposed = best_setting(evidence, now)
    judged_groups = int(np.unique(evidence.groups[evidence.labels >= 0]).size)
    counts_now = counts_by_group(evidence, is_found(evidence, now), groups)
    now_f1 = cross_validated = gain = Share(None, 0.0, 1.0)
    if judged_groups >= FEWEST_GROUPS:
        (now_f1, cross_validated), gain = bootstrap([counts_now, cross_validate(evidence, groups, now)])
    return Calibration(
        table="",
        labelled=0,
        duplicates=0,
        not_there=0,
        groups=judged_groups,
        unlabelled_are_wrong=False,
        now=score(evidence, now),
        now_f1=now_f1,
        proposed=score(evidence, proposed),
        cross_validated_f1=cross_validated,
        gain=gain,
        is_better=gain.value is not None and gain.low > 0,
        steps=tuple(
            step(evidence, now, after)
            for after in dict.fromkeys((proposed, *neighbours(now)))
            if after != now
        ),
        by_radius=_scores(evidence, now, bands=(False, True), radii=range(MAX_RADIUS + 1)),
        by_threshold=_scores(evidence, now, measures=MEASURES),
        by_length=(score_by_length(evidence, now), score_by_length(evidence, proposed)),
        grid=_scores(
            evidence, now, bands=(False, True), radii=range(MAX_RADIUS + 1), measures=("none", *MEASURES)
        ),
    )


def _scores(
    evidence: Evidence,
    now: PairSetting,
    *,
    bands: Iterable[bool] | None = None,
    radii: Iterable[int] | None = None,
    measures: Iterable[str] | None = None,
) -> tuple[SettingScore, ...]:
    """The setting now, with these things varied; a measure with all thresholds."""
    pairs = (
        [(now.similarity, now.threshold)]
        if measures is None
        else [(m, t) for m in measures for t in (_COARSE if m != "none" else (0.0,))]
    )
    return tuple(
        score(evidence, PairSetting(radius, has_bands, measure, threshold))
        for has_bands, radius, (measure, threshold) in product(
            [now.bands] if bands is None else bands, [now.radius] if radii is None else radii, pairs
        )
    )


def _by_key(rows: WideRows, labels: Iterable[PairLabel]) -> tuple[dict[RowPair, bool], int]:
    """(row numbers -> label, how many labels name a row that is not there); the last of several counts."""
    number_of = {key: number for number, key in enumerate(rows.row_keys)}
    labelled: dict[RowPair, bool] = {}
    not_there = 0
    for label in labels:
        a, b = number_of.get(str(label.key_a)), number_of.get(str(label.key_b))
        if a is None or b is None or a == b:
            not_there += 1
        else:
            labelled[min(a, b), max(a, b)] = label.is_duplicate
    return labelled, not_there


def _by_text(rows: WideRows, verdicts: Sequence[StoredVerdict]) -> tuple[dict[RowPair, bool], int]:
    """The same by the texts that were judged, whichever row has them now."""
    wanted = {digest for verdict in verdicts for digest in verdict.digests}
    first: dict[bytes, int] = {}
    for number, digest in enumerate(rows.digests.view("V16").reshape(-1).tolist()):
        if digest in wanted:
            first.setdefault(digest, number)
    labelled: dict[RowPair, bool] = {}
    not_there = 0
    for verdict in verdicts:
        numbers = sorted(first[digest] for digest in verdict.digests if digest in first)
        if len(numbers) == 2:
            labelled[numbers[0], numbers[1]] = verdict.is_duplicate
        else:
            not_there += 1
    return labelled, not_there
