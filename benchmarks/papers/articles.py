"""The texts of P4 and P5, who had 3,000 labelled articles: labelled petitions, and edited copies of some.

The pairs of petitions that were labelled near-verbatim are wanted, and each copy with its original. All other
pairs are not, those about the same matter in other words among them.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import read_gold_pairs, read_petitions
from benchmarks.materials import edited
from benchmarks.papers.report import values_of_all_pairs, wanted_among_all
from benchmarks.scores import Pair, Score
from db_dedup.methods import MethodEntry
from db_dedup.methods.entries import Compare

_PLANTED_SHARE: Final = 0.28
_MOST_EDITED_SHARE: Final = 0.15
_SHORTEST: Final = 40


@dataclass(frozen=True)
class Articles:
    """n texts, and which of all pairs are wanted: bool[n * (n - 1) / 2]."""

    texts: list[str]
    wanted: set[Pair]
    is_wanted: NDArray[np.bool_]
    labelled: int

    def __str__(self) -> str:
        """Say what they are."""
        return (
            f"{len(self.texts):,} texts: petitions-gold, and edited copies; {len(self.wanted)} wanted pairs, "
            f"{self.labelled} labelled near-verbatim and {len(self.wanted) - self.labelled} planted"
        )


def read_labelled_texts(data: Path, count: int) -> Articles:
    """Return so many texts, 28 % of them edited copies of petitions that no label names.

    Of a copy 1 to 15 % of the characters are edited.
    """
    planted = int(count * _PLANTED_SHARE)
    petitions = read_petitions(data)[: count - planted]
    numbers = {str(petition["id"]): number for number, petition in enumerate(petitions)}
    labels = read_gold_pairs(data)
    wanted: set[Pair] = set()
    for pair, label in labels.items():
        if label == "V" and pair <= numbers.keys():
            first, second = sorted(numbers[key] for key in pair)
            wanted.add((first, second))
    labelled = len(wanted)
    texts = [str(petition["content"]).strip() for petition in petitions]
    named = {key for pair in labels for key in pair}
    free = [n for key, n in numbers.items() if key not in named and len(texts[n]) >= _SHORTEST]
    chance = random.Random(4)
    characters = [c for text in texts for c in text if c.isalpha()]
    for origin in chance.sample(free, min(planted, len(free))):
        edits = 1 + int(chance.random() * _MOST_EDITED_SHARE * len(texts[origin]))
        wanted.add((origin, len(texts)))
        texts.append(edited(texts[origin], edits, characters, chance))
    return Articles(texts, wanted, wanted_among_all(wanted, len(texts)), labelled)


@dataclass(frozen=True)
class Judged:
    """The similarities or distances of all pairs by one method, with what was wanted."""

    method: MethodEntry
    values: NDArray[np.float64]
    is_wanted: NDArray[np.bool_]

    def at(self, threshold: float) -> Score:
        """What the method finds at a threshold."""
        is_found = self.method.are_alike(self.values, threshold)
        right = int(np.count_nonzero(is_found & self.is_wanted))
        return Score(int(np.count_nonzero(is_found)), right, int(np.count_nonzero(self.is_wanted)))

    def over_thresholds(self) -> dict[float, Score]:
        """Threshold -> what the method finds, the strictest first."""
        return {threshold: self.at(threshold) for threshold in self.method.thresholds}

    def best(self) -> tuple[float, Score]:
        """The threshold with the largest F1, the strictest of several, and its score."""
        return max(self.over_thresholds().items(), key=lambda item: item[1].f1)


def judge(method: MethodEntry, compare: Compare, articles: Articles) -> Judged:
    """Compare every pair."""
    return Judged(method, values_of_all_pairs(compare, len(articles.texts)), articles.is_wanted)
