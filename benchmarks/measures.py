"""Measures of similarity on every pair of labelled petitions, with corpus weights and without, and guards."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import read_gold_pairs, read_petitions
from db_dedup.config import watched_table
from db_dedup.flow.compare.kernels import similarities
from db_dedup.flow.features.counting import Features
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.text.normalise import normalise_batch

FEATURES: Final = {"words": "jieba", "2-grams": "chars:2", "3-grams": "chars:3", "4-grams": "chars:4"}
_THRESHOLDS: Final = np.arange(20, 96) / 100
_FOLDS: Final = 5
_SHUFFLES: Final = 20

# The petitions hide names of places behind letters: A6区, B市.
_PLACE: Final = re.compile(
    r"[a-z]\d*(?:区|县|市)|[\u4e00-\u9fff]{2,4}(?:小区|花园|社区|街道|村|路|镇|苑|城|府)"
)


@dataclass(frozen=True)
class Judged:
    """Every pair of petitions that share anything much, and what people say of it.

    Attributes:
        left: int32[p].
        right: int32[p].
        is_wanted: bool[p], labelled near-verbatim.
        groups: int64[p], by what must stay in one fold.
        wanted: how many pairs there are to be found.
        wanted_in: int64[g], how many of them each group has.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    is_wanted: NDArray[np.bool_]
    groups: NDArray[np.int64]
    wanted: int
    wanted_in: NDArray[np.int64]


def run(data: Path | None) -> None:
    """Print the F1 of each measure at a threshold that is chosen on other petitions, then of each guard."""
    assert data is not None
    petitions = read_petitions(data)
    gold = read_gold_pairs(data)
    texts = [[str(row["title"]), str(row["content"])] for row in petitions]
    numbers = {str(row["id"]): number for number, row in enumerate(petitions)}
    labels = {_by_number(pair, numbers): label for pair, label in gold.items()}
    judged = judge(texts, labels)
    print(
        f"{len(texts):,} petitions, every two of them compared; {judged.wanted} near-verbatim pairs (V)\n"
        "the threshold is chosen on four fifths of the groups of labelled pairs and judged on the rest; "
        f"means of {_SHUFFLES} ways to deal them out"
    )
    print(f"{'features':<12} {'measure':<22} {'precision':>9} {'recall':>7} {'F1':>6} {'threshold':>10}")
    for name, segmenter in FEATURES.items():
        features = features_of(texts, segmenter)
        for measure, scores in measured(features, judged).items():
            precision, recall, f1, threshold = cross_validated(scores, judged)
            print(f"{name:<12} {measure:<22} {precision:>9.3f} {recall:>7.3f} {f1:>6.3f} {threshold:>10.2f}")
    tell_guards(texts, judged)


def _by_number(pair: frozenset[str], numbers: Mapping[str, int]) -> tuple[int, int]:
    a, b = sorted(numbers[key] for key in pair)
    return a, b


def features_of(texts: list[list[str]], segmenter: str) -> Features:
    """Each text's features and how often it has them."""
    settings = {"columns": {"title": 1, "content": 1}, "segmenter": segmenter, "similarity": "cosine"}
    watched = watched_table("petitions", {**settings, "sketches": False, "term_frequency": "raw"})
    return Fingerprinter(watched.recipe).fingerprint(texts).features


def judge(texts: list[list[str]], labels: Mapping[tuple[int, int], str]) -> Judged:
    """Return the pairs that share over a fifth of the shorter text's 2-grams; no measure finds others."""
    features = features_of(texts, "chars:2")
    left, right = (side.astype(np.int32) for side in np.triu_indices(len(texts), 1))
    overlap = similarities("overlap", features.starts, features.hashes, features.weights, left, right)
    left, right = left[overlap > 0.2], right[overlap > 0.2]
    component = components(len(texts), labels)
    is_wanted = np.array(
        [labels.get(pair) == "V" for pair in zip(left.tolist(), right.tolist(), strict=True)], np.bool_
    )
    wanted = np.array([component[a] for (a, _), label in labels.items() if label == "V"])
    return Judged(
        left, right, is_wanted, component[left], wanted.size, np.bincount(wanted, minlength=len(texts))
    )


def components(count: int, pairs: Mapping[tuple[int, int], str]) -> NDArray[np.int64]:
    """int64[n]: equal for petitions that labelled pairs connect."""
    roots = np.arange(count)
    for a, b in pairs:
        roots[roots == roots[b]] = roots[a]
    return roots


def measured(features: Features, judged: Judged) -> dict[str, NDArray[np.float64]]:
    """The similarity of every pair by every measure, with the corpus's weights as well.

    Those are the logarithm of how rare a feature is among the petitions.
    """
    _, numbers, rows_with = np.unique(features.hashes, return_inverse=True, return_counts=True)
    rarity = np.log(features.counts.size / rows_with)[numbers]
    once, often = np.ones(rarity.size), features.weights.astype(np.float64)
    rows = (features, judged)
    shared, total = sums(*rows, once, once)
    weighed, weighed_total = sums(*rows, rarity, np.ones(rarity.size))
    counted, counted_total = sums(*rows, often, often)
    rare, rare_total = sums(*rows, rarity * (1 + np.log(often)), rarity * (1 + np.log(often)))
    return {
        "Jaccard": shared / (total[0] + total[1] - shared),
        "Jaccard, weighed": weighed / (weighed_total[0] + weighed_total[1] - weighed),
        "overlap": shared / np.minimum(*total),
        "overlap, weighed": weighed / np.minimum(*weighed_total),
        "cosine": counted / np.sqrt(counted_total[0] * counted_total[1]),
        "cosine, weighed": rare / np.sqrt(rare_total[0] * rare_total[1]),
    }


def sums(
    features: Features, judged: Judged, first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """(sum of first x second over the features that two petitions share, the same of each alone)."""
    order = np.argsort(features.hashes, kind="stable")
    rows = np.repeat(np.arange(features.counts.size), features.counts)
    bounds = np.flatnonzero(np.diff(features.hashes[order], prepend=features.hashes[order[0]])).tolist()
    shared = np.zeros((features.counts.size, features.counts.size))
    for begin, end in zip([0, *bounds], [*bounds, order.size], strict=True):
        part = order[begin:end]
        shared[np.ix_(rows[part], rows[part])] += np.outer(first[part], second[part])
    own = np.maximum(shared.diagonal(), 1e-9)
    return shared[judged.left, judged.right], (own[judged.left], own[judged.right])


def cross_validated(scores: NDArray[np.float64], judged: Judged) -> tuple[float, float, float, float]:
    """(precision, recall, F1, median threshold) of thresholds chosen without the pairs they are judged by."""
    generator = np.random.default_rng(7)
    right = found = 0.0
    chosen = []
    is_found = scores[None, :] >= _THRESHOLDS[:, None]
    names = np.unique(judged.groups)
    for _ in range(_SHUFFLES):
        fold_of = np.zeros(int(names.max()) + 1, np.int64)
        fold_of[generator.permutation(names)] = np.arange(names.size) % _FOLDS
        folds = fold_of[judged.groups]
        by_fold = np.array(
            [
                [
                    np.count_nonzero(is_found[:, chosen_pairs], axis=1)
                    for chosen_pairs in (folds == fold, (folds == fold) & judged.is_wanted)
                ]
                for fold in range(_FOLDS)
            ]
        )
        wanted_by_fold = np.bincount(fold_of, judged.wanted_in[: fold_of.size], _FOLDS)
        for fold in range(_FOLDS):
            found_elsewhere, right_elsewhere = by_fold.sum(axis=0) - by_fold[fold]
            f1 = 2 * right_elsewhere / (found_elsewhere + judged.wanted - wanted_by_fold[fold])
            best = int(np.argmax(f1))
            chosen.append(float(_THRESHOLDS[best]))
            found += by_fold[fold, 0, best] / _SHUFFLES
            right += by_fold[fold, 1, best] / _SHUFFLES
    return right / found, right / judged.wanted, 2 * right / (found + judged.wanted), float(np.median(chosen))


def tell_guards(texts: list[list[str]], judged: Judged) -> None:
    """What the default rule finds among all pairs, and what is left of it under each guard."""
    features = features_of(texts, "chars:3")
    scores = similarities(
        "char_overlap", features.starts, features.hashes, features.weights, judged.left, judged.right
    )
    is_found = scores >= 0.57
    whole = normalise_batch([" ".join(text) for text in texts])
    titles = normalise_batch([text[0] for text in texts])
    numbers = re.compile(r"\d+")
    guards = {
        "none": np.ones(is_found.size, np.bool_),
        "each text names a place that the other does not": ~differ(whole, _PLACE, judged),
        "each title names a place that the other does not": ~differ(titles, _PLACE, judged),
        "each title has a number that the other has not": ~differ(titles, numbers, judged),
    }
    print(
        "\nthe default rule on every pair, by guard against the same letter from another place\n"
        f"{'guard':<52}"
    )
    for name, passes in guards.items():
        kept = is_found & passes
        right = np.count_nonzero(kept & judged.is_wanted)
        found = np.count_nonzero(kept)
        f1 = 2 * right / (found + judged.wanted)
        print(f"{name:<52} precision {right / found:.3f} recall {right / judged.wanted:.3f} F1 {f1:.3f}")


def differ(texts: list[str], pattern: re.Pattern[str], judged: Judged) -> NDArray[np.bool_]:
    """bool[p]: each of two texts has a match that the other has not."""
    found = [set(pattern.findall(text)) for text in texts]
    pairs = zip(judged.left.tolist(), judged.right.tolist(), strict=True)
    return np.array([bool(found[a] - found[b]) and bool(found[b] - found[a]) for a, b in pairs], np.bool_)
