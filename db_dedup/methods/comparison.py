"""Compare the methods on labelled pairs: precision, recall, F1 at each threshold, and the time they take."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from time import process_time
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import DedupError
from db_dedup.flow.features.counting import Features
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.methods.corpus import Corpus, CutTexts, cut_corpus
from db_dedup.methods.entries import MethodEntry
from db_dedup.methods.hashes import cityhash64
from db_dedup.methods.plan import ComparisonPlan
from db_dedup.methods.registry import FEATURES, METHODS
from db_dedup.methods.segmenters import SEGMENTERS
from db_dedup.progress import NullProgress, Progress
from db_dedup.records.comparison import Combination, Part, SkippedTrial, ThresholdScore, Trial

_WARM_UP: Final = ("夜间施工，噪音扰民。", "the lift is out of order, again")
"""Texts on which everything runs once before its time is taken: dictionaries are loaded, kernels compiled."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class LabelledTexts:
    """n texts and p labelled pairs of them.

    Attributes:
        texts: as they are stored; line ends part paragraphs.
        left: int64[p], number of the one text.
        right: int64[p], number of the other.
        labels: bool[p], whether they are duplicates.
    """

    texts: Sequence[str]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    labels: NDArray[np.bool_]

    @cached_property
    def normalised(self) -> list[str]:
        """The texts in one spelling and without line ends, as the product compares them."""
        return normalise_batch(self.texts)


@dataclass(frozen=True)
class Outcome:
    """The results of the combinations, each tuple in the order of the plan."""

    trials: tuple[Trial, ...]
    skipped: tuple[SkippedTrial, ...]


def compare_combinations(
    texts: LabelledTexts, plan: ComparisonPlan, progress: Progress | None = None
) -> Outcome:
    """Try each combination of a plan; one that cannot run is skipped, and the others go on.

    The corpus, on which TF-IDF and I-Match depend, is these texts. Texts are cut once by each segmenter and
    features made once of each of its corpora, but the time of both counts for each combination.
    """
    run = _Run(texts, plan, progress or NullProgress())
    run.all()
    order = {combination: place for place, combination in enumerate(run.steps)}
    return Outcome(
        tuple(sorted(run.trials, key=lambda trial: order[trial.combination])),
        tuple(sorted(run.skipped, key=lambda trial: order[trial.combination])),
    )


def compare_one(texts: LabelledTexts, combination: Combination) -> NDArray[np.float64]:
    """Return float64[p]: the similarities or distances of the pairs by one combination.

    Raises:
        DedupError: it cannot run.
    """
    corpus = _cut(texts, combination.segmenter)[0]
    features = FEATURES[combination.features].load()(corpus, cityhash64)
    return METHODS[combination.method].load()(features)(texts.left, texts.right)


def score_curve(
    method: MethodEntry,
    values: NDArray[np.float64],
    labels: NDArray[np.bool_],
    thresholds: Sequence[float],
) -> tuple[ThresholdScore, ...]:
    """Return the score at each threshold.

    Args:
        method: by which the values were computed; it knows in which direction they are alike.
        values: float64[p], similarities or distances of pairs.
        labels: bool[p], whether the pairs are duplicates.
        thresholds: in any order, which the result has, too.
    """
    return tuple(
        score_found(method.are_alike(values, threshold), labels, threshold) for threshold in thresholds
    )


def score_found(found: NDArray[np.bool_], labels: NDArray[np.bool_], threshold: float) -> ThresholdScore:
    """Return the score of a decision.

    Args:
        found: bool[p], the pairs that it calls duplicates.
        labels: bool[p], whether they are.
        threshold: by which it decides.
    """
    right = int(np.count_nonzero(found & labels))
    wrong, missed = int(np.count_nonzero(found)) - right, int(np.count_nonzero(labels)) - right
    return ThresholdScore(
        threshold,
        right,
        wrong,
        missed,
        right / (right + wrong) if right + wrong else None,
        right / (right + missed) if right + missed else 0.0,
        2 * right / (2 * right + wrong + missed) if right else 0.0,
    )


def best_score(curve: Sequence[ThresholdScore]) -> ThresholdScore:
    """Return the score with the best F1; of equally good neighbours the middle one.

    Other labels change the middle of a plateau least. Of an even number it is the stricter one.
    """
    best = max(score.f1 for score in curve)
    start = next(place for place, score in enumerate(curve) if score.f1 == best)
    end = start
    while end + 1 < len(curve) and curve[end + 1].f1 == best:
        end += 1
    return curve[(start + end) // 2]


class _Run:
    """Does the combinations with one segmenter after the other, so that only its corpus is in memory."""

    def __init__(self, texts: LabelledTexts, plan: ComparisonPlan, progress: Progress) -> None:
        self.steps = plan.combinations()
        self.trials: list[Trial] = []
        self.skipped: list[SkippedTrial] = []
        self._texts, self._plan, self._progress = texts, plan, progress

    def all(self) -> None:
        self._progress.start("combinations", len(self.steps))
        for segmenter in dict.fromkeys(each.segmenter for each in self.steps):
            chosen = [each for each in self.steps if each.segmenter == segmenter]
            with self._skipping(chosen, "segmenter"):
                corpus, seconds = _cut(self._texts, segmenter)
                for features in dict.fromkeys(each.features for each in chosen):
                    with_these = [each for each in chosen if each.features == features]
                    self._with_features(with_these, corpus, seconds)
        self._progress.finish()

    def _with_features(self, chosen: list[Combination], corpus: Corpus, seconds: float) -> None:
        with self._skipping(chosen, "features"):
            entry = FEATURES[chosen[0].features]
            entry.check()
            make = entry.load()
            make(_warm_corpus(), cityhash64)
            features, more_seconds = _timed(lambda: make(corpus, cityhash64))
            for combination in chosen:
                with self._skipping([combination], "method"):
                    self.trials.append(self._trial(combination, features, seconds + more_seconds))
                    self._progress.advance(1)

    def _trial(self, combination: Combination, features: Features, seconds: float) -> Trial:
        texts, entry = self._texts, METHODS[combination.method]
        entry.check()
        prepare = entry.load()
        warm = FEATURES["none"].load()(_warm_corpus(), cityhash64)
        prepare(warm)(np.array([0]), np.array([1]))
        compare, more_seconds = _timed(lambda: prepare(features))
        values, comparison_seconds = _timed(lambda: compare(texts.left, texts.right))
        curve = score_curve(entry, values, texts.labels, self._plan.thresholds_of(entry.name))
        return Trial(
            combination,
            self.steps[combination],
            best_score(curve),
            curve,
            not entry.higher_is_alike,
            seconds + more_seconds,
            comparison_seconds,
        )

    @contextmanager
    def _skipping(self, chosen: list[Combination], part: Part) -> Iterator[None]:
        """Skip those of the combinations that are not done when a DedupError ends the block."""
        try:
            yield
        except DedupError as error:
            done = {trial.combination for trial in self.trials} | {each.combination for each in self.skipped}
            left = [each for each in chosen if each not in done]
            self.skipped += [SkippedTrial(each, self.steps[each], part, str(error)) for each in left]
            self._progress.advance(len(left))


def _cut(texts: LabelledTexts, segmenter: str | None) -> tuple[Corpus, float]:
    """Return (the corpus, the CPU seconds of cutting it); without a segmenter it has no tokens."""
    if segmenter is None:
        # Feature codes need the paragraphs, which normalised texts do not have.
        return Corpus(texts.texts, [[] for _ in texts.texts]), 0.0
    entry = SEGMENTERS[segmenter]
    entry.check()
    cut: CutTexts = entry.load()
    cut(_WARM_UP)
    normalised = texts.normalised
    return _timed(lambda: cut_corpus(normalised, cut))


def _warm_corpus() -> Corpus:
    return Corpus(_WARM_UP, [list(text) for text in _WARM_UP])


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    started = process_time()
    result = work()
    return result, process_time() - started
