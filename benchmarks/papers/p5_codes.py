"""P5: its table: features and methods at its own thresholds, SimHash with 32 bits.

P5 gives MinHash of 20 hashes the thresholds 3 and 5 without a unit. Both readings are shown: at most so many
minima differ, or at least so many are equal.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Final

from benchmarks.papers.articles import Articles, judge, read_labelled_texts
from benchmarks.papers.report import print_finding, wanted_among_all
from benchmarks.scores import HEADER, Score
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.stop_words import STOP_WORDS
from db_dedup.methods import FEATURES, METHODS, SEGMENTERS, Corpus, cityhash64, cut_corpus

FREQUENCY, TF_IDF, TEXT_RANK, CODES = "frequency", "tf-idf", "textrank", "feature-codes"
FEATURE_NAMES: Final = (FREQUENCY, TF_IDF, TEXT_RANK, CODES)
STRONGEST: Final = {TF_IDF: "tf-idf:20", TEXT_RANK: "textrank:20"}
"""What a comparison of sets gets for a weight: the 20 strongest words."""

SIMHASH, COSINE, JACCARD = "SimHash, 2 bits", "cosine, 0.95", "Jaccard, 0.2"
DIFFER_3, DIFFER_5 = "MinHash, 3 differ", "MinHash, 5 differ"
EQUAL_5, EQUAL_3 = "MinHash, 5 equal", "MinHash, 3 equal"
METHODS_AT: Final = {
    SIMHASH: ("simhash-32", 2.0),
    DIFFER_3: ("minhash:20", 17 / 20),
    DIFFER_5: ("minhash:20", 15 / 20),
    EQUAL_5: ("minhash:20", 5 / 20),
    EQUAL_3: ("minhash:20", 3 / 20),
    COSINE: ("cosine", 0.95),
    JACCARD: ("jaccard", 0.2),
}


@dataclass(frozen=True)
class Sizes:
    """How many texts; P5 has 3,000."""

    texts: int = 3_000


SMALL = Sizes(texts=120)


@dataclass(frozen=True)
class Cell:
    """One cell of the table: what was found, and the CPU seconds of words, features and comparisons."""

    score: Score
    seconds: float

    @property
    def false_hits(self) -> int:
        """Pairs that were found and are not wanted."""
        return self.score.found - self.score.right


Table = dict[tuple[str, str], Cell]


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print the table."""
    assert data is not None
    articles = read_labelled_texts(data, sizes.texts)
    print(articles)
    cut = SEGMENTERS["jieba"].load()
    cut(["好"])
    start = process_time()
    words = cut_corpus(normalise_batch(articles.texts), cut, STOP_WORDS)
    cut_seconds = process_time() - start
    print(f"CPU seconds: features and comparisons, and {cut_seconds:.2f} to cut words where they are needed")
    # Feature codes need the paragraphs, which normalising removes.
    lines = Corpus(articles.texts, [[]] * len(articles.texts))
    print(f"{'features':<15} {'method':<18} {HEADER} {'false':>6} {'CPU s':>6}")
    table: Table = {}
    _warm_up()
    for features in FEATURE_NAMES:
        corpus = lines if features == CODES else words
        for method in METHODS_AT:
            cell = measure(articles, corpus, features, method)
            if features != CODES:
                cell = replace(cell, seconds=cell.seconds + cut_seconds)
            table[features, method] = cell
            print(
                f"{features:<15} {method:<18} {cell.score} {cell.false_hits:>6,} {cell.seconds:>6.2f}",
                flush=True,
            )
    print_verdicts(table)


def _warm_up() -> None:
    """Compile the kernels, or load them from numba's cache."""
    corpus = Corpus(["一，二", "二，三"], [["一", "二"], ["二", "三"]])
    articles = Articles(list(corpus.texts), set(), wanted_among_all(set(), 2), 0)
    for features in FEATURE_NAMES:
        for method in METHODS_AT:
            measure(articles, corpus, features, method)


def measure(articles: Articles, corpus: Corpus, features: str, method: str) -> Cell:
    """Make the features and compare every pair."""
    name, threshold = METHODS_AT[method]
    entry = METHODS[name]
    chosen = features if entry.uses_weights else STRONGEST.get(features, features)
    start = process_time()
    made = FEATURES[chosen].load()(corpus, cityhash64)
    judged = judge(entry, entry.load()(made), articles)
    seconds = process_time() - start
    return Cell(judged.at(threshold), seconds)


def print_verdicts(table: Table) -> None:
    """Say what P5 found, and whether it is so here."""
    false = {
        features: sum(table[features, method].false_hits for method in METHODS_AT)
        for features in (FREQUENCY, TF_IDF, TEXT_RANK)
    }
    print_finding(
        "TextRank and TF-IDF lower false hits",
        ", ".join(f"{features} {count:,}" for features, count in false.items()) + " in all columns together",
        max(false[TF_IDF], false[TEXT_RANK]) < false[FREQUENCY],
        "most are those of the loosest thresholds, where a weight decides which 20 words are compared",
    )
    strict = table[FREQUENCY, DIFFER_3]
    others = (SIMHASH, COSINE, JACCARD)
    print_finding(
        "MinHash has the fewest false hits, with a precision of up to 1.00",
        f"with frequency {strict.false_hits} at 3 differing minima, precision {strict.score.precision:.3f}; "
        + ", ".join(f"{name} {table[FREQUENCY, name].false_hits:,}" for name in others),
        strict.false_hits <= min(table[FREQUENCY, name].false_hits for name in others),
        "3 is read as the number of minima that may differ; if it were that of equal ones, MinHash would "
        f"have {table[FREQUENCY, EQUAL_3].false_hits:,} false hits",
    )
    recalls = {method: table[FREQUENCY, method].score.recall for method in METHODS_AT}
    print_finding(
        "Jaccard has the fewest misses: recall > 0.90",
        ", ".join(f"{name} {recall:.3f}" for name, recall in recalls.items()),
        recalls[JACCARD] > 0.9
        and recalls[JACCARD] >= max(recalls[name] for name in (SIMHASH, COSINE, DIFFER_5)),
        "0.2 is a low threshold, so that it finds texts about the same matter as well",
    )
    print_finding(
        "MinHash reaches the recall of Jaccard when its threshold is loosened",
        f"from 3 to 5 differing minima {recalls[DIFFER_3]:.3f} to {recalls[DIFFER_5]:.3f}, from 5 to 3 equal "
        f"ones {recalls[EQUAL_5]:.3f} to {recalls[EQUAL_3]:.3f}; Jaccard {recalls[JACCARD]:.3f}",
        max(recalls[DIFFER_5], recalls[EQUAL_3]) >= recalls[JACCARD] - 0.02,
        "the share of equal minima estimates Jaccard, so that 3 of 20 equal ones are a Jaccard of 0.15",
    )
    _print_fastest(table)
    f1 = {name: table[FREQUENCY, name].score.f1 for name in (SIMHASH, DIFFER_5, COSINE, JACCARD)}
    print_finding(
        "SimHash is the worst of the four",
        "F1 with frequency: " + ", ".join(f"{name} {value:.3f}" for name, value in f1.items()),
        f1[SIMHASH] == min(f1.values()),
        "each at the paper's own threshold, which suits one method better than another",
    )


def _print_fastest(table: Table) -> None:
    minhash = {features: table[features, DIFFER_3].seconds for features in FEATURE_NAMES}
    (features, method), fastest = min(table.items(), key=lambda item: item[1].seconds)
    print_finding(
        "feature codes with MinHash are fastest",
        "with MinHash "
        + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in minhash.items())
        + f"; fastest of all {features} with {method}, {fastest.seconds:.2f} s",
        features == CODES and method in {DIFFER_3, DIFFER_5},
        "feature codes need no words and are the fastest features, but here all pairs are compared, and a "
        "SimHash by one XOR, MinHash by 20 numbers",
    )
