"""The rule of a recipe applied to two texts, every test of it told by itself."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.embedded.token_record import RecordedTokens, TokenRecorder
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter, joined_rows, stop_words_of
from db_dedup.engines.row_texts import NOTHING_TO_SAY, compared_columns
from db_dedup.flow.similarity import similarities
from db_dedup.flow.sketches import least_passages
from db_dedup.records import RuleTest, SourceRow, StoredLink, Verdict

IsRejected = Callable[[bytes, bytes], bool]

SIMHASH = "simhash"
BANDS = "minhash bands"
PASSAGES = "passages"
WITHIN = "within"
REJECTED = "rejected"


@dataclass(frozen=True)
class AppliedRule:
    """What the rule says of two rows.

    Attributes:
        words: the two rows after steps 2 to 4, with the features of their fingerprints.
        columns: column by column the two texts as they are compared.
        tokens: of the columns of texts, those of the first row before those of the second.
        distance: in bits; None where a row has no fingerprint.
        similarities: every measure by its name.
        proposers: what can bring two rows together; one that passes is enough.
        tests: what a proposed pair must pass, all of it.
    """

    words: FingerprintedRows
    columns: list[list[str]]
    tokens: RecordedTokens
    verdict: Verdict
    distance: int | None
    similarities: dict[str, float]
    proposers: tuple[RuleTest, ...]
    tests: tuple[RuleTest, ...]

    @property
    def has_fingerprints(self) -> bool:
        """Whether both rows have enough text to judge."""
        return bool(self.words.has_fingerprint.all())

    def agrees_with(self, link: StoredLink | None) -> bool:
        """Whether the stored answer says the same of the two rows."""
        if link is None:
            return self.verdict in (Verdict.NO_PAIR, Verdict.TOO_LITTLE_TEXT)
        if link.kind == "copies":
            return self.verdict is Verdict.COPIES
        measured = [test.value for test in self.tests if test.value is not None]
        is_same = link.similarity is None if not measured else _is_close(link.similarity, measured[0])
        return self.verdict is Verdict.DUPLICATE_PAIR and link.distance == self.distance and is_same


class RuleApplier:
    """Applies the rule of one table."""

    def __init__(self, watched: WatchedTable) -> None:
        """Prepare the segmenter, which takes a moment.

        Raises:
            ConfigError: no such segmenter, or user words that it cannot take.
        """
        self._watched = watched
        words = watched.model_copy(update={"similarity": "word_jaccard", "bands": False})
        self._recorder = TokenRecorder(stop_words_of(watched))
        self._words = Fingerprinter(words, self._recorder)
        self._grams = Fingerprinter(watched.model_copy(update={"similarity": "char_overlap", "bands": True}))

    def apply(self, row_a: SourceRow, row_b: SourceRow, is_rejected: IsRejected) -> AppliedRule:
        """Compare two rows as a scan does, and by the measures that it does not ask for as well.

        Args:
            row_a: the one row.
            row_b: the other.
            is_rejected: whether people have said that texts of these digests are no duplicates.
        """
        columns = compared_columns(
            self._watched.columns.values(), self._watched.normaliser, [row_a.values, row_b.values]
        )
        rows = [[[texts[i]] for texts in columns] for i in (0, 1)]
        within = [[row_a.within], [row_b.within]]
        # One row at a time: a text of megabytes takes many times its size while it is cut.
        self._recorder.clear()
        words = joined_rows([*map(self._words.fingerprint_compared, rows, within, [[None], [None]])])
        tokens = self._recorder.take()
        # Known rows are not cut into words a second time.
        known = [[digest] for digest in words.digests]
        by_grams = partial(self._grams.fingerprint_compared, compares_known=True)
        grams = joined_rows([*map(by_grams, rows, within, known)])
        scores = {
            name: _similarity(measure, grams if name.startswith("char_") else words)
            for name, measure in MEASURE_OF.items()
            if measure is not None
        }
        are_copies = words.digests[0] == words.digests[1] != NOTHING_TO_SAY
        distance = _distance(words, are_copies)
        radius = self._watched.rule.radius
        is_near = distance is not None and distance <= radius
        proposers = [RuleTest(SIMHASH, is_near, distance, radius)]
        if self._watched.rule.bands:
            proposers += _sketch_tests(grams)
        tests = tuple(self._tests(row_a, row_b, scores))
        if not are_copies and is_rejected(*words.digests):
            tests = (*tests, RuleTest(REJECTED, passed=False))
        verdict = _verdict(are_copies, distance, proposers, tests)
        return AppliedRule(words, columns, tokens, verdict, distance, scores, tuple(proposers), tests)

    def _tests(self, row_a: SourceRow, row_b: SourceRow, scores: dict[str, float]) -> list[RuleTest]:
        rule = self._watched.rule
        tests = [RuleTest(WITHIN, row_a.within == row_b.within)] if self._watched.within else []
        if rule.similarity != "none":
            score = scores[rule.similarity]
            tests.append(RuleTest(rule.similarity, score >= rule.threshold, score, rule.threshold))
        return tests


def _verdict(
    are_copies: bool, distance: int | None, proposers: Sequence[RuleTest], tests: tuple[RuleTest, ...]
) -> Verdict:
    if are_copies:
        return Verdict.COPIES
    if distance is None:
        return Verdict.TOO_LITTLE_TEXT
    is_pair = any(p.passed for p in proposers) and all(test.passed for test in tests)
    return Verdict.DUPLICATE_PAIR if is_pair else Verdict.NO_PAIR


def _distance(words: FingerprintedRows, are_copies: bool) -> int | None:
    if are_copies:
        return 0
    if not words.has_fingerprint.all():
        return None
    a, b = words.fingerprints.tolist()
    return int(a ^ b).bit_count()


def _sketch_tests(rows: FingerprintedRows) -> list[RuleTest]:
    """What the sketches of two rows have in common, the passages apart from the bands."""
    common = np.intersect1d(rows.sketches.of(0), rows.sketches.of(1))
    passages = int(np.count_nonzero(common & np.uint64(1)))
    bands = common.size - passages
    least = int(least_passages(rows.sketches.counts.min()))
    return [RuleTest(BANDS, bands > 0, bands, 1), RuleTest(PASSAGES, passages >= least, passages, least)]


def _similarity(measure: str, rows: FingerprintedRows) -> float:
    features = rows.features
    first, second = np.array([0], np.int32), np.array([1], np.int32)
    return float(similarities(measure, features.starts, features.hashes, features.weights, first, second)[0])


def _is_close(stored: float | None, now: float | None) -> bool:
    return stored is not None and now is not None and math.isclose(stored, now, abs_tol=1e-9)
