"""Choose the pairs that a person should label: those that help most to find the right threshold and radius.

A pair helps if the decision about it is close: its similarity is near the threshold, its distance is near the
radius, or only one kind of candidate generator finds it. Such pairs are taken from texts of every length, one
length band after another. Every fourth pair is drawn at random from all that the rule finds.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import DEFAULT_PRESET, PRESETS
from db_dedup.flow.candidates.blocks import MAX_RADIUS
from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.measured_table import MeasuredRowPairs, MeasuredRows, find_measured, length_bands
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.review.labels import digests_of
from db_dedup.jobs.review.measured_rows import read_measured_rows
from db_dedup.records import JudgedTexts, Question
from db_dedup.records.calibration import PairSetting
from db_dedup.records.fingerprints import DigestPair, digest_pair
from db_dedup.store.given_keys import read_given
from db_dedup.translation import Phrase

_AT_MOST_PAIRS: Final = 3_000_000
_WIDER_BITS: Final = 4
_NEAR_THRESHOLD: Final = 0.25
_NEAR_RADIUS: Final = 2
_ONE_IN: Final = 4
_QUESTIONS_A_ROW: Final = 2
_SEED: Final = 20

_Reasons = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class _Candidates:
    """The pairs that a person may be asked about, without their texts."""

    rows: MeasuredRows
    pairs: MeasuredRowPairs
    is_found: NDArray[np.bool_]
    similarity: NDArray[np.float64]


def choose_questions(
    context: JobContext, recipe_digest: str | None, answered: Collection[DigestPair], limit: int
) -> list[Question]:
    """Return the pairs that help most to judge the rule, the best first; nothing is written.

    Args:
        context: the table.
        recipe_digest: of the recipe in use.
        answered: digests of the pairs that are labelled already.
        limit: how many at most.
    """
    setting = _judged_setting(context.watched.setting)
    with read_measured_rows(context) as rows:
        pairs, _ = find_measured(rows, min(MAX_RADIUS, setting.radius + _WIDER_BITS), _AT_MOST_PAIRS)
        rule = Rule(setting)
        similarity, is_found = rule.similarities(pairs.measured), rule.decide(pairs.measured)
        found = _Candidates(rows, pairs, is_found, similarity)
        reasons = _reasons(found, setting)
        chosen = list(islice(_chosen(found, reasons, answered), limit))
    return _with_texts(context, recipe_digest, found, reasons, chosen)


def _judged_setting(setting: PairSetting) -> PairSetting:
    """Return a setting that compares texts: by the measure of the default preset where this one does not."""
    if setting.similarity != NO_SIMILARITY:
        return setting
    return replace(setting, similarity=PRESETS[DEFAULT_PRESET].similarity, threshold=0.0)


def _reasons(found: _Candidates, setting: PairSetting) -> _Reasons:
    """Return reason to ask -> float64[p], how much each pair helps by this reason, 0 to 1."""
    threshold = setting.threshold or PRESETS[DEFAULT_PRESET].threshold
    rule, pairs = Rule(replace(setting, threshold=threshold)), found.pairs.measured
    is_alike, is_near = rule.is_alike(pairs), rule.is_near(pairs)
    shares_hashes = rule.shares_hashes(pairs)
    from_threshold = np.abs(found.similarity - rule.thresholds(pairs))
    beyond = np.abs(pairs.distances - setting.radius - 0.5)
    near_radius = np.clip(1 - beyond / (_NEAR_RADIUS + 1), 0, 1)
    return {
        Phrase("near the threshold"): np.clip(1 - from_threshold / _NEAR_THRESHOLD, 0, 1),
        Phrase("near the radius"): np.where(is_alike & ~shares_hashes, near_radius, 0.0),
        Phrase("similar, but not a candidate pair"): np.where(is_alike & ~is_near & ~shares_hashes, 0.9, 0.0),
        Phrase("found by one candidate generator only"): np.where(
            is_alike & (is_near ^ shares_hashes), 0.3, 0.0
        ),
    }


def _chosen(found: _Candidates, reasons: _Reasons, answered: Collection[DigestPair]) -> Iterator[int]:
    """Yield numbers of pairs, none twice and no row too often."""
    worth = np.max(np.stack(list(reasons.values())), axis=0)
    order = np.argsort(-worth, kind="stable")
    shorter = np.minimum(found.rows.lengths[found.pairs.left], found.rows.lengths[found.pairs.right])
    bands = length_bands(shorter)
    by_band = [order[bands[order] == band].tolist() for band in np.unique(bands)]
    close = [p for some in zip_longest(*by_band) for p in some if p is not None and worth[p] > 0]
    drawn = np.random.default_rng(_SEED).permutation(np.flatnonzero(found.is_found)).tolist()
    known = set(answered)
    asked: dict[int, int] = {}
    for pair in _mixed(close, drawn):
        a, b = int(found.pairs.left[pair]), int(found.pairs.right[pair])
        digests = digest_pair(found.rows.digest(a), found.rows.digest(b))
        if digests in known or max(asked.get(a, 0), asked.get(b, 0)) >= _QUESTIONS_A_ROW:
            continue
        known.add(digests)
        asked[a], asked[b] = asked.get(a, 0) + 1, asked.get(b, 0) + 1
        yield pair


def _mixed(close: Sequence[int], drawn: Sequence[int]) -> Iterator[int]:
    """Yield three close pairs, then a drawn one, and so on, then the rest of both."""
    step = _ONE_IN - 1
    parts = [(close[i * step : (i + 1) * step], drawn[i : i + 1]) for i in range(len(close) // step + 1)]
    yield from chain.from_iterable(chain.from_iterable(parts))
    yield from drawn[len(parts) :]


def _with_texts(
    context: JobContext,
    recipe_digest: str | None,
    found: _Candidates,
    reasons: _Reasons,
    chosen: Sequence[int],
) -> list[Question]:
    """Return the questions whose rows still exist, with the texts that their digests are of."""
    rows, pairs = found.rows, found.pairs
    keys = [rows.row_keys[row] for pair in chosen for row in (pairs.left[pair], pairs.right[pair])]
    texts = {row.row_key: row for row in read_given(context.source_engine.connect, context.source, keys)}
    digests = digests_of(context.watched, list(texts.values()))
    questions = []
    for pair in chosen:
        a, b = (rows.row_keys[side[pair]] for side in (pairs.left, pairs.right))
        if a not in texts or b not in texts:
            continue
        reason = max(reasons, key=lambda name: reasons[name][pair])
        questions.append(
            Question(
                a, b, texts[a].values, texts[b].values,
                JudgedTexts(recipe_digest, {a: digests[a], b: digests[b]}),
                int(pairs.measured.distances[pair]),
                float(found.similarity[pair]), bool(found.is_found[pair]),
                reason if reasons[reason][pair] > 0 else "found",
            )
        )  # fmt: skip
    return questions
