"""Score the settings of a table by labelled pairs, in one pass over its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from db_dedup.errors import ConfigError
from db_dedup.flow.candidates.blocks import MAX_RADIUS
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.matching.measured_table import MeasuredRows
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.review.calibration.choosing import best_setting, cross_validate
from db_dedup.jobs.review.calibration.counting import (
    bootstrap,
    counts_by_group,
    is_found,
    score,
    score_by_length,
)
from db_dedup.jobs.review.calibration.evidence import Evidence, RowPair, gather, numbered
from db_dedup.jobs.review.calibration.steps import neighbours, step
from db_dedup.jobs.review.measured_rows import read_measured_rows
from db_dedup.plurals import counted
from db_dedup.records import Calibration, PairLabel, PairSetting, RepeatedLabels, SettingScore, Share
from db_dedup.records.labels import NONE_REPEATED
from db_dedup.store.labels import StoredLabel

_AT_MOST_PAIRS: Final = 3_000_000
FEWEST_GROUPS: Final = 10
"""With fewer groups of labelled pairs, a cross-validated score would mean nothing."""

_COARSE: Final = tuple(round(i / 20, 2) for i in range(1, 20))


def calibrate(
    context: JobContext,
    labels: Iterable[PairLabel] | None,
    stored: Sequence[StoredLabel],
    *,
    unlabelled_are_wrong: bool = False,
) -> Calibration:
    """Judge settings by labelled pairs; nothing is written.

    Args:
        context: the table.
        labels: by row key; None to judge by the stored labels.
        stored: labels by the digests of texts.
        unlabelled_are_wrong: the labels name every duplicate in the table.

    Raises:
        ConfigError: the table has no labelled duplicate, or too many unlabelled pairs to count them all as
            wrong.
    """
    with read_measured_rows(context) as rows:
        matched = _by_key(rows, labels) if labels is not None else _by_text(rows, stored)
        labelled, not_there = matched.labelled, matched.not_there
        if not any(labelled.values()):
            raise ConfigError(
                "no labelled duplicate to judge by: {labels} on rows that are there, "
                "{not_there:,} on rows that are not; `db-dedup label {name}` asks for some",
                labels=counted(len(labelled), "label"),
                not_there=not_there,
                name=context.watched.name,
            )
        evidence = gather(rows, labelled, _AT_MOST_PAIRS)
    if unlabelled_are_wrong:
        if not evidence.is_complete:
            raise ConfigError(
                "more than {most:,} pairs have no label: too many to be all wrong", most=_AT_MOST_PAIRS
            )
        evidence = evidence.with_unlabelled_wrong()
    found = _judged(evidence, context.watched.setting)
    return replace(
        found,
        table=context.watched.name,
        labelled=len(labelled),
        duplicates=sum(labelled.values()),
        not_there=not_there,
        unlabelled_are_wrong=unlabelled_are_wrong,
        repeated=matched.repeated,
    )


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
        by_radius=_scores(evidence, now, sketches=(False, True), radii=range(MAX_RADIUS + 1)),
        by_threshold=_scores(evidence, now, measures=MEASURES),
        by_length=(score_by_length(evidence, now), score_by_length(evidence, proposed)),
        grid=_scores(
            evidence, now, sketches=(False, True), radii=range(MAX_RADIUS + 1), measures=("none", *MEASURES)
        ),
    )


def _scores(
    evidence: Evidence,
    now: PairSetting,
    *,
    sketches: Iterable[bool] | None = None,
    radii: Iterable[int] | None = None,
    measures: Iterable[str] | None = None,
) -> tuple[SettingScore, ...]:
    """Score the present setting with these things varied; each measure with all thresholds."""
    pairs = (
        [(now.similarity, now.threshold)]
        if measures is None
        else [(m, t) for m in measures for t in (_COARSE if m != "none" else (0.0,))]
    )
    return tuple(
        score(
            evidence,
            replace(now, radius=radius, sketches=with_sketches, similarity=measure, threshold=threshold),
        )
        for with_sketches, radius, (measure, threshold) in product(
            [now.sketches] if sketches is None else sketches, [now.radius] if radii is None else radii, pairs
        )
    )


class _Matched(NamedTuple):
    """Labels matched to the rows of a table.

    Attributes:
        labelled: row numbers, the smaller first -> whether they are duplicates.
        not_there: how many labels name a row, or a text, that the table does not have.
        repeated: labels that do not count, because the same pair has a later one.
    """

    labelled: dict[RowPair, bool]
    not_there: int
    repeated: RepeatedLabels = NONE_REPEATED


def _by_key(rows: MeasuredRows, labels: Iterable[PairLabel]) -> _Matched:
    """Match labels to rows by their keys; of several labels on a pair the last one counts."""
    number_of = {key: number for number, key in enumerate(rows.row_keys)}
    labelled: list[tuple[RowPair, bool]] = []
    not_there = 0
    for label in labels:
        a, b = number_of.get(str(label.key_a)), number_of.get(str(label.key_b))
        if a is None or b is None or a == b:
            not_there += 1
        else:
            labelled.append(((min(a, b), max(a, b)), label.is_duplicate))
    return _Matched(dict(labelled), not_there, RepeatedLabels.among(labelled))


def _by_text(rows: MeasuredRows, stored: Sequence[StoredLabel]) -> _Matched:
    """Match labels to rows by the texts that were labelled, whichever row has them now."""
    wanted = {digest for label in stored for digest in label.digests}
    first: dict[bytes, int] = {}
    for number, digest in enumerate(rows.digests.view("V16").reshape(-1).tolist()):
        if digest in wanted:
            first.setdefault(digest, number)
    labelled: dict[RowPair, bool] = {}
    not_there = 0
    for label in stored:
        numbers = sorted(first[digest] for digest in label.digests if digest in first)
        if len(numbers) == 2:
            labelled[numbers[0], numbers[1]] = label.is_duplicate
        else:
            not_there += 1
    return _Matched(labelled, not_there)
