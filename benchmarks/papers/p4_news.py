"""P4: segmenters, features and methods on 3,000 texts: each step alone, crosswise, over thresholds.

P4 had 3,000 labelled articles. Here it is labelled petitions and edited copies of some of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Final

from benchmarks.papers.articles import Articles, judge, read_labelled_texts
from benchmarks.papers.report import print_finding, wanted_among_all
from benchmarks.plot import line_svg
from benchmarks.scores import HEADER, Score
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.stop_words import STOP_WORDS
from db_dedup.methods import FEATURES, METHODS, SEGMENTERS, Corpus, cityhash64, cut_corpus

FEATURE_NAMES: Final = ("none", "relative-frequency", "tf-idf", "textrank")
METHOD_NAMES: Final = (
    "simhash",
    "simhash-cosine",
    "jaccard",
    "jaccard-shorter",
    "cosine",
    "minhash-one-hash:100",
    "minhash:100",
)
_BITS: Final = tuple(float(bits) for bits in range(29))
"""Thresholds of SimHash: more than the registry's, whose last one would be the best for some texts here."""
_PRECISION, _RECALL = 0.96, 0.75
"""What P4's best pairs exceed."""
PLOT: Final = Path(__file__).parents[2] / "docs" / "explanation" / "papers-p4-thresholds.svg"


@dataclass(frozen=True)
class Sizes:
    """How many texts; P4 has 3,000."""

    texts: int = 3_000


SMALL = Sizes(texts=120)


@dataclass(frozen=True)
class Outcome:
    """What one combination finds at each threshold of its method, and the CPU seconds of its comparisons."""

    curve: dict[float, Score]
    seconds: float

    @property
    def best(self) -> tuple[float, Score]:
        """The threshold with the largest F1, the strictest of several, and its score."""
        return max(self.curve.items(), key=lambda item: item[1].f1)

    @property
    def good_thresholds(self) -> int:
        """At how many thresholds it is as good as P4's best pairs."""
        return sum(one.precision > _PRECISION and one.recall > _RECALL for one in self.curve.values())


class Combinations:
    """Runs each combination once."""

    def __init__(self, articles: Articles) -> None:
        """Cut nothing yet; compile the kernels, or load them from numba's cache."""
        tiny = Articles(["一二", "一三"], set(), wanted_among_all(set(), 2), 0)
        corpus = Corpus(tiny.texts, [["一", "二"], ["一", "三"]])
        for features in FEATURE_NAMES:
            for method in METHOD_NAMES:
                judge(
                    METHODS[method],
                    METHODS[method].load()(FEATURES[features].load()(corpus, cityhash64)),
                    tiny,
                )
        self._articles = articles
        self._corpora: dict[str, Corpus] = {}
        self._outcomes: dict[tuple[str, str, str], Outcome] = {}
        self.cut_seconds: dict[str, float] = {}

    def cut(self, segmenter: str) -> Corpus:
        """Cut the texts, once."""
        if segmenter not in self._corpora:
            cut = SEGMENTERS[segmenter].load()
            cut(["好"])
            texts = normalise_batch(self._articles.texts)
            start = process_time()
            self._corpora[segmenter] = cut_corpus(texts, cut, STOP_WORDS)
            self.cut_seconds[segmenter] = process_time() - start
        return self._corpora[segmenter]

    def outcome(self, segmenter: str, features: str, method: str) -> Outcome:
        """Compare every pair of texts, once."""
        key = segmenter, features, method
        if key not in self._outcomes:
            made = FEATURES[features].load()(self.cut(segmenter), cityhash64)
            entry = METHODS[method]
            if method == "simhash":
                entry = replace(entry, thresholds=_BITS)
            compare = entry.load()(made)
            start = process_time()
            judged = judge(entry, compare, self._articles)
            self._outcomes[key] = Outcome(judged.over_thresholds(), process_time() - start)
        return self._outcomes[key]


def run(data: Path | None, sizes: Sizes = Sizes(), plot: Path | None = None) -> None:
    """Print the three rounds, and draw the third one of the usual size."""
    assert data is not None
    if sizes == Sizes():
        plot = plot or PLOT
    articles = read_labelled_texts(data, sizes.texts)
    print(articles)
    segmenters = available_segmenters()
    base = "ik-smart" if "ik-smart" in segmenters else "jieba"
    if base == "jieba":
        print("jieba, precise mode, stands for IKAnalyzer smart below")
    runs = Combinations(articles)
    each_alone(runs, segmenters, base)
    crosswise(runs, segmenters)
    over_thresholds(runs, segmenters, base, plot)
    print_verdicts(runs, segmenters, base)


def available_segmenters() -> list[str]:
    """The segmenters of P4 that can run here; what is missing is printed by name."""
    names = [name for name, entry in SEGMENTERS.items() if "P4" in entry.papers]
    for name in names:
        if missing := SEGMENTERS[name].missing:
            print(f"NOT MEASURED: {name}: {missing}")
    return [name for name in names if SEGMENTERS[name].missing is None]


def each_alone(runs: Combinations, segmenters: Sequence[str], base: str) -> None:
    """Round one."""
    print(f"\n1. each step alone, at the threshold of the largest F1\n{'':<40} {'at':>5} {HEADER}  CPU s")
    for segmenter in segmenters:
        _print_line(f"SimHash, none, {segmenter}", runs.outcome(segmenter, "none", "simhash"))
    for features in FEATURE_NAMES:
        _print_line(f"SimHash, {features}, {base}", runs.outcome(base, features, "simhash"))
    for method in METHOD_NAMES:
        _print_line(f"{method}, none, {base}", runs.outcome(base, "none", method))


def crosswise(runs: Combinations, segmenters: Sequence[str]) -> None:
    """Round two."""
    print("\n2. methods and segmenters crosswise, no weights: precision and recall at the largest F1")
    print(f"{'':<22}" + "".join(f"{name:>18}" for name in segmenters))
    for method in METHOD_NAMES:
        scores = (runs.outcome(segmenter, "none", method).best[1] for segmenter in segmenters)
        cells = "".join(f"{f'{one.precision:.3f} {one.recall:.3f}':>18}" for one in scores)
        print(f"{method:<22}{cells}")


def best_pairs(segmenters: Sequence[str], base: str) -> list[tuple[str, str]]:
    """The pairs of P4's third round, with the segmenters that are here."""
    full = "jieba-full" if "jieba-full" in segmenters else base
    return [("minhash:100", full), ("jaccard", base), ("simhash-cosine", base)]


def over_thresholds(
    runs: Combinations, segmenters: Sequence[str], base: str, plot: Path | None = None
) -> None:
    """Round three."""
    print("\n3. over thresholds: precision and recall")
    pairs = best_pairs(segmenters, base)
    print(f"{'at':>5}" + "".join(f"{f'{method}, {segmenter}':>28}" for method, segmenter in pairs))
    curves = [runs.outcome(segmenter, "none", method).curve for method, segmenter in pairs]
    for threshold in curves[0]:
        scores = (curve[threshold] for curve in curves)
        cells = "".join(f"{f'{one.precision:.3f} {one.recall:.3f}':>28}" for one in scores)
        print(f"{threshold:>5.2f}{cells}")
    if plot is not None:
        lines = {
            f"{method.partition(':')[0]}, {what}": {
                threshold: score.precision if what == "precision" else score.recall
                for threshold, score in curve.items()
            }
            for (method, _), curve in zip(pairs, curves, strict=True)
            for what in ("precision", "recall")
        }
        title = "Precision and recall of P4's best pairs, by threshold"
        plot.write_text(line_svg(lines, title, "threshold", "precision, recall"), encoding="utf-8")
        print(f"drawn in {plot}")


def print_verdicts(runs: Combinations, segmenters: Sequence[str], base: str) -> None:
    """Say what P4 found, and whether it is so here."""
    under_simhash = {name: runs.outcome(name, "none", "simhash").best[1] for name in segmenters}
    best = max(segmenters, key=lambda name: under_simhash[name].f1)
    print_finding(
        "under SimHash IK smart, HanLP CRF and jieba full are the best segmenters (precision > 0.905, recall "
        "> 0.555)",
        ", ".join(f"{name} {one.precision:.3f} and {one.recall:.3f}" for name, one in under_simhash.items()),
        best in {"ik-smart", "hanlp-crf", "jieba-full"},
        f"only {', '.join(segmenters)} are installed here, compared by F1 at the best threshold",
    )
    f1 = partial(_f1, runs, base)
    by_features = {name: f1(name, "simhash") for name in FEATURE_NAMES}
    print_finding(
        "no weighting is best",
        _listed(by_features),
        by_features["none"] == max(by_features.values()),
        "F1 of SimHash at its best threshold",
    )
    print_finding(
        "the cosine of SimHash vectors is above SimHash",
        _listed({name: f1("none", name) for name in ("simhash-cosine", "simhash")}),
        f1("none", "simhash-cosine") > f1("none", "simhash"),
        "the signs lose how far a sum is from zero",
    )
    _print_jaccards(runs, base)
    cosine, jaccard = (runs.outcome(base, "none", name).seconds for name in ("cosine", "jaccard"))
    print_finding(
        "cosine is too slow",
        f"{cosine:.2f} CPU s for all pairs beside {jaccard:.2f} s of Jaccard",
        cosine > 2 * jaccard,
        "both walk along two sorted lists of hashes here",
    )
    _print_best_pairs(runs, segmenters, base)


def _print_jaccards(runs: Combinations, base: str) -> None:
    whole, shorter = (runs.outcome(base, "none", name) for name in ("jaccard", "jaccard-shorter"))
    at = whole.best[0]
    one, other = whole.curve[at], shorter.curve[at]
    print_finding(
        "Jaccard on the shorter text gains 17 % recall on Jaccard, at lower precision",
        f"at {at:.2f} recall {other.recall:.3f} beside {one.recall:.3f}, precision {other.precision:.3f} "
        f"beside {one.precision:.3f}",
        other.recall > one.recall and other.precision < one.precision,
        "its value is never below Jaccard's, so that it finds what Jaccard finds and more",
    )
    print_finding(
        "Jaccard on the shorter text takes half the time of Jaccard",
        f"{shorter.seconds:.2f} CPU s beside {whole.seconds:.2f}",
        shorter.seconds < 0.75 * whole.seconds,
        "both count the common ones of the same two sets here",
    )


def _print_best_pairs(runs: Combinations, segmenters: Sequence[str], base: str) -> None:
    pairs = best_pairs(segmenters, base)
    outcomes = {
        f"{method} + {segmenter}": runs.outcome(segmenter, "none", method) for method, segmenter in pairs
    }
    minhash, jaccard, vectors = (one.good_thresholds for one in outcomes.values())
    print_finding(
        "MinHash of many hashes + jieba full and Jaccard + IK smart have a precision > 0.96 with a recall > "
        "0.75, stable over thresholds; SimHash cosine + IK smart is less stable",
        ", ".join(
            f"{name} at {one.good_thresholds} of {len(one.curve)} thresholds"
            for name, one in outcomes.items()
        ),
        min(minhash, jaccard) > max(1, vectors),
        "stable is counted as the number of thresholds, 0.05 apart, at which both hold",
    )


def _f1(runs: Combinations, segmenter: str, features: str, method: str) -> float:
    return runs.outcome(segmenter, features, method).best[1].f1


def _listed(values: dict[str, float]) -> str:
    return "F1 " + ", ".join(f"{name} {value:.3f}" for name, value in values.items())


def _print_line(name: str, outcome: Outcome) -> None:
    threshold, best = outcome.best
    print(f"{name:<40} {threshold:>5g} {best} {outcome.seconds:>6.2f}", flush=True)
