"""Which pairs a person should look at: those that tell most about where the rule should draw its line.

A pair tells much if the rule only just finds it or only just does not: its similarity is near the threshold,
its distance near the radius, or one proposer alone brings it. Such pairs are taken in turn from texts of each
length. Every fourth is drawn from all that the rule finds, so that what is found easily is looked at as well.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import PRESETS, Rule
from db_dedup.engines.embedded.wide_table import WidePairs, WideRows, WideTable, find_wide, length_bands
from db_dedup.flow.candidates import MAX_RADIUS
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.verdicts import digests_of
from db_dedup.records import JudgedTexts, Question
from db_dedup.store.given_keys import read_given
from db_dedup.store.verdicts import DigestPair, digest_pair

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
    """What to ask about, as yet without texts."""

    rows: WideRows
    pairs: WidePairs
    is_found: NDArray[np.bool_]
    similarity: NDArray[np.float64]


def choose_questions(
    context: JobContext, recipe_digest: str | None, answered: Collection[DigestPair], limit: int
) -> list[Question]:
    """The most telling pairs, the most telling first; nothing is written.

    Args:
        context: the table.
        recipe_digest: of the recipe that serves.
        answered: digests of the pairs that need not be asked.
        limit: how many at most.
    """
    rule = _judged_rule(context.watched.rule)
    with WideTable(context.watched) as wide:
        context.progress.start("fingerprints", None)
        for page in context.source.pages(context.source_engine):
            wide.add_page(page)
            context.progress.advance(len(page))
        context.progress.finish()
        rows = wide.rows()
        pairs, _ = find_wide(rows, min(MAX_RADIUS, rule.radius + _WIDER_BITS), _AT_MOST_PAIRS)
        similarity = pairs.scores[rule.similarity]
        is_proposed = (pairs.distances <= rule.radius) | (pairs.shares_band & rule.bands)
        is_found = is_proposed & (similarity >= rule.threshold)
        found = _Candidates(rows, pairs, is_found, similarity)
        reasons = _reasons(found, rule)
        chosen = list(_chosen(found, reasons, answered, limit))
    return _with_texts(context, recipe_digest, found, reasons, chosen)


def _judged_rule(rule: Rule) -> Rule:
    """A rule that looks at no text is judged by the measure of the default preset."""
    if rule.similarity != "none":
        return rule
    default = PRESETS["balanced"]
    return rule.model_copy(update={"similarity": default.similarity, "threshold": 0.0})


def _reasons(found: _Candidates, rule: Rule) -> _Reasons:
    """Reason -> how much each pair tells for it, 0 to 1."""
    pairs, threshold = found.pairs, rule.threshold or PRESETS["balanced"].threshold
    is_alike = found.similarity >= threshold
    is_near = pairs.distances <= rule.radius
    shares_band = pairs.shares_band & rule.bands
    beyond = np.abs(pairs.distances - rule.radius - 0.5)
    near_radius = np.clip(1 - beyond / (_NEAR_RADIUS + 1), 0, 1)
    return {
        "near the threshold": np.clip(1 - np.abs(found.similarity - threshold) / _NEAR_THRESHOLD, 0, 1),
        "near the radius": np.where(is_alike & ~shares_band, near_radius, 0.0),
        "alike, and not proposed": np.where(is_alike & ~is_near & ~shares_band, 0.9, 0.0),
        "proposed in one way only": np.where(is_alike & (is_near ^ shares_band), 0.3, 0.0),
    }


def _chosen(
    found: _Candidates, reasons: _Reasons, answered: Collection[DigestPair], limit: int
) -> Iterator[int]:
    """Numbers of pairs, none twice and no row too often."""
    worth = np.max(np.stack(list(reasons.values())), axis=0)
    order = np.argsort(-worth, kind="stable")
    shorter = np.minimum(found.rows.lengths[found.pairs.left], found.rows.lengths[found.pairs.right])
    bands = length_bands(shorter)
    by_band = [order[bands[order] == band].tolist() for band in np.unique(bands)]
    telling = [p for some in zip_longest(*by_band) for p in some if p is not None and worth[p] > 0]
    drawn = np.random.default_rng(_SEED).permutation(np.flatnonzero(found.is_found)).tolist()
    known = set(answered)
    asked: dict[int, int] = {}
    given = 0
    for pair in _mixed(telling, drawn):
        a, b = int(found.pairs.left[pair]), int(found.pairs.right[pair])
        digests = digest_pair(found.rows.digest(a), found.rows.digest(b))
        if digests in known or max(asked.get(a, 0), asked.get(b, 0)) >= _QUESTIONS_A_ROW:
            continue
        known.add(digests)
        asked[a], asked[b] = asked.get(a, 0) + 1, asked.get(b, 0) + 1
        yield pair
        given += 1
        if given == limit:
            return


def _mixed(telling: Sequence[int], drawn: Sequence[int]) -> Iterator[int]:
    """Three of the one, then one of the other, then what is left of either."""
    step = _ONE_IN - 1
    turns = [(telling[i * step : (i + 1) * step], drawn[i : i + 1]) for i in range(len(telling) // step + 1)]
    yield from chain.from_iterable(chain.from_iterable(turns))
    yield from drawn[len(turns) :]


def _with_texts(
    context: JobContext,
    recipe_digest: str | None,
    found: _Candidates,
    reasons: _Reasons,
    chosen: Sequence[int],
) -> list[Question]:
    """The questions whose rows are still there, with the texts that their digests are of."""
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
                int(pairs.distances[pair]), float(found.similarity[pair]), bool(found.is_found[pair]),
                reason if reasons[reason][pair] > 0 else "found",
            )
        )  # fmt: skip
    return questions
