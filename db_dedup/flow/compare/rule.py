"""The rule: whether a pair of rows is a candidate pair and a duplicate pair, with its similarity.

Scan, worker, check, explain, label and calibrate all use it. The same decision has two forms. `RuleNumbers`
and the kernels compare rows. `decide` takes pairs that are measured already (`MeasuredPairs`), so that other
settings can be tried on them. A test checks that the two agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import contiguous
from db_dedup.flow.compare import kernels
from db_dedup.flow.compare.kernels import NO_MEASURE, RuleNumbers, measure_number
from db_dedup.flow.compare.measures import MEASURES, NO_SIMILARITY, Measure
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.records.calibration import PairSetting
from db_dedup.records.kinds import excluded_by, excluded_mask

FAR: Final = 99
"""The distance of two rows of which one has no fingerprint: larger than every radius."""


@dataclass(frozen=True)
class MeasuredPairs:
    """p pairs of rows with all values that a rule can need.

    Attributes:
        distances: int16[p], bits.
        shares_hashes: bool[p], whether the sketches of the two rows share enough hashes.
        scores: name of a measure -> float64[p]; at least for the measure of the rule that decides.
        edit_similarities: float64[p], NaN unless both rows are short.
        long_scores: float64[p], the similarity by long grams, 1 where these do not count; None: nowhere.
        kinds: name of a measure -> uint8[p], packed as in `records.kinds`; only a rule that leaves out kinds
            needs that of its measure.
        other_numbers: bool[p], whether both rows are short and each has a number that the other does not;
            None: nowhere.
        shares_by_length: bool[p], `shares_hashes` by the sketches of a measure that compares short texts in
            another way (`Measure.by_length`); None: by the same sketches.
    """

    distances: NDArray[np.int16]
    shares_hashes: NDArray[np.bool_]
    scores: Mapping[str, NDArray[np.float64]]
    edit_similarities: NDArray[np.float64]
    long_scores: NDArray[np.float64] | None = None
    kinds: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    other_numbers: NDArray[np.bool_] | None = None
    shares_by_length: NDArray[np.bool_] | None = None

    def only(self, chosen: NDArray[np.bool_]) -> "MeasuredPairs":
        """Return the chosen pairs."""
        scores = {name: values[chosen] for name, values in self.scores.items()}
        kinds = {name: values[chosen] for name, values in self.kinds.items()}
        long_scores = None if self.long_scores is None else self.long_scores[chosen]
        other_numbers = None if self.other_numbers is None else self.other_numbers[chosen]
        shares_by_length = None if self.shares_by_length is None else self.shares_by_length[chosen]
        return MeasuredPairs(
            self.distances[chosen],
            self.shares_hashes[chosen],
            scores,
            self.edit_similarities[chosen],
            long_scores,
            kinds,
            other_numbers,
            shares_by_length,
        )

    def similarity(self, setting: PairSetting) -> NDArray[np.float64]:
        """Return float64[p]: the similarity by the features that a setting compares, also of short rows."""
        score = self.scores[setting.similarity]
        if self.long_scores is None or not uses_long_grams(setting):
            return score
        return np.minimum(score, self.long_scores)


def uses_long_grams(setting: PairSetting) -> bool:
    """Return whether two rows that both have long grams are compared by these, too."""
    has_measure = setting.similarity != NO_SIMILARITY
    return has_measure and MEASURES[setting.similarity].by_length and setting.long_grams


class Rule:
    """Decides by one setting.

    Attributes:
        setting: radius, sketches, similarity and thresholds.
        measure: None if every candidate pair is a duplicate pair.
    """

    def __init__(self, setting: PairSetting) -> None:
        self.setting = setting
        has_measure = setting.similarity != NO_SIMILARITY
        self.measure: Measure | None = MEASURES[setting.similarity] if has_measure else None
        self._short_threshold = setting.short_threshold if self.measure and self.measure.by_length else 0.0
        self._excluded = excluded_mask(setting.exclude_kinds)

    def __reduce__(self) -> tuple[type["Rule"], tuple[PairSetting]]:
        """Pickle the setting only: in another process the rule has another address."""
        return type(self), (self.setting,)

    @cached_property
    def numbers(self) -> RuleNumbers:
        """The rule as the kernels take it; compiles it if that was not done."""
        return RuleNumbers(
            self.setting.radius,
            NO_MEASURE if self.measure is None else measure_number(self.setting.similarity),
            float(self.setting.threshold),
            float(self._short_threshold),
            uses_long_grams(self.setting),
            self._excluded,
            kernels.address_of_rule(),
        )

    @property
    def uses_weights(self) -> bool:
        """Whether the measure needs the weights of the features."""
        return self.measure is not None and self.measure.of_weights

    def confirm(
        self, rows: ComparedRows, left: NDArray[np.int32], right: NDArray[np.int32]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.uint8]]:
        """Decide which of p candidate pairs are duplicates.

        Returns:
            (bool[p] whether they are duplicates, float64[p] their similarity, NaN if it was not needed,
            uint8[p] the kinds of those that are duplicates, packed as in `records.kinds`).
        """
        pairs = contiguous(left, right)
        found: tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.uint8]] = kernels.confirm_pairs(
            *pairs, _arrays(rows), self.numbers
        )
        return found

    def kinds(
        self, rows: ComparedRows, left: NDArray[np.int32], right: NDArray[np.int32]
    ) -> NDArray[np.uint8]:
        """Return uint8[p]: the packed kinds of p pairs, duplicates or not; 0 without a measure."""
        pairs = contiguous(left, right)
        found: NDArray[np.uint8] = kernels.kinds_of(*pairs, _arrays(rows), self.numbers)
        return found

    def is_near(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether the pairs are candidates by their fingerprints."""
        return pairs.distances <= self.setting.radius

    def shares_hashes(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether the pairs are candidates by their sketches; all False without sketches."""
        is_by_length = self.measure is not None and self.measure.by_length
        if is_by_length and pairs.shares_by_length is not None:
            return pairs.shares_by_length & self.setting.sketches
        return pairs.shares_hashes & self.setting.sketches

    def is_alike(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether the similarity reaches the threshold, and the numbers agree that must."""
        if self.measure is None:
            return np.ones(pairs.distances.size, np.bool_)
        return (self.similarities(pairs) >= self.thresholds(pairs)) & ~self.has_other_numbers(pairs)

    def compares_numbers(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether the pairs are two short texts, whose numbers are compared."""
        return ~np.isnan(pairs.edit_similarities) & (self._short_threshold > 0)

    def has_other_numbers(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether the pairs are two short texts that each have a number of their own."""
        if pairs.other_numbers is None:
            return np.zeros(pairs.distances.size, np.bool_)
        return pairs.other_numbers & self.compares_numbers(pairs)

    def has_few_edits(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether the pairs are two short texts that are alike by their edit similarity."""
        # NaN, of pairs that are not two short texts, is not above any number.
        return (pairs.edit_similarities >= self._short_threshold) & (self._short_threshold > 0)

    def similarities(self, pairs: MeasuredPairs) -> NDArray[np.float64]:
        """Return float64[p]: the edit similarity where it is enough, else the similarity by the measure."""
        scores = pairs.similarity(self.setting)
        return np.where(self.has_few_edits(pairs), pairs.edit_similarities, scores)

    def thresholds(self, pairs: MeasuredPairs) -> NDArray[np.float64]:
        """Return float64[p]: what the similarity of each pair is compared with."""
        return np.where(self.has_few_edits(pairs), self._short_threshold, self.setting.threshold)

    def is_kept(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether the pairs are of no kind, and without a flag, that is left out."""
        if self.measure is None or not self._excluded:
            return np.ones(pairs.distances.size, np.bool_)
        kinds = pairs.kinds[self.setting.similarity].astype(np.int64)
        kept: NDArray[np.bool_] = excluded_by(self._excluded, kinds) == 0
        return kept

    def decide(self, pairs: MeasuredPairs) -> NDArray[np.bool_]:
        """Return bool[p]: whether pairs that agree in `within` and are not rejected are duplicates."""
        is_candidate = self.is_near(pairs) | self.shares_hashes(pairs)
        return is_candidate & self.is_alike(pairs) & self.is_kept(pairs)


def _arrays(rows: ComparedRows) -> kernels.RowArrays:
    return rows.arrays(slice(None), rows.rejected)
