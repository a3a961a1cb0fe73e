"""Apply the rule of a recipe to two texts, and report the result of each of its tests."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.flow.candidates.generators import HASH_GENERATORS, SIMHASH
from db_dedup.flow.candidates.sketches import least_in_common, shares_enough
from db_dedup.flow.compare.edit_distance import edit_similarities
from db_dedup.flow.compare.kernels import long_similarities, similarities
from db_dedup.flow.compare.measures import MEASURES, NO_SIMILARITY
from db_dedup.flow.compare.numbers import which_have_other_numbers
from db_dedup.flow.compare.rule import FAR, MeasuredPairs, Rule
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter, joined_rows, stop_words_of
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.flow.text.compared import compared_columns
from db_dedup.flow.text.frames import frame_spans, without_frames
from db_dedup.jobs.explain.token_record import RecordedTokens, TokenRecorder
from db_dedup.records import Decision, RuleTest, SourceRow, StoredLink
from db_dedup.records.kinds import EXACT_DUPLICATES, NO_KIND, PairKind
from db_dedup.records.recipe import Recipe

IsRejected = Callable[[bytes, bytes], bool]

_FIRST_AND_SECOND = np.array([[0], [1]], np.int32)

WITHIN = "within"
REJECTED = "rejected"
EDIT_SIMILARITY: Final = "edit_similarity"
"""The test that two short texts with few edits pass, in place of the measure."""
NUMBERS: Final = "numbers"
"""The test that two short texts fail if each has a number that the other does not."""
LONG_GRAMS = "long_grams"
EXCLUDED = "exclude_kinds"


@dataclass(frozen=True)
class AppliedRule:
    """The decision of the rule about two rows, with all values that it depends on.

    Attributes:
        words: the two rows after steps 2 to 4, with the features of their fingerprints.
        columns: column by column the two texts as they are compared, without frames.
        frames: column by column the parts of the two texts that were left out as frames.
        tokens: row by row the tokens of the text columns.
        distance: in bits; None if a row has no fingerprint.
        similarities: name of a measure -> similarity, for every measure; also by the edits of two short texts
            and by long grams where these count.
        generators: the results of the candidate generators; one that passes makes a candidate pair.
        tests: the tests of a candidate pair; it must pass all of them.
        kind: what kind of pair they are; not known if they are none, unless they are none by their kind.
    """

    words: FingerprintedRows
    columns: list[list[str]]
    frames: list[list[tuple[str, ...]]]
    tokens: list[RecordedTokens]
    decision: Decision
    distance: int | None
    similarities: dict[str, float]
    generators: tuple[RuleTest, ...]
    tests: tuple[RuleTest, ...]
    kind: PairKind

    def agrees_with(self, link: StoredLink | None, key_a: str, key_b: str) -> bool:
        """Return whether the stored answer has the same decision about the two rows, with these keys."""
        if link is None:
            return self.decision in (Decision.NO_PAIR, Decision.TOO_LITTLE_TEXT)
        if link.kind == "copies":
            return self.decision is Decision.COPIES
        measured = [test.value for test in self.tests if test.value is not None]
        is_same = link.similarity is None if not measured else _is_close(link.similarity, measured[0])
        kind = self.kind.kind, self.kind.part_of(key_a, key_b), self.kind.other_place
        is_same &= kind == (link.pair_kind, link.contained_key, link.other_place)
        return self.decision is Decision.DUPLICATE_PAIR and link.distance == self.distance and is_same


class RuleApplier:
    """Applies the rule of one table."""

    def __init__(self, watched: WatchedTable, recipe: Recipe) -> None:
        """Prepare the segmenter, which takes a moment.

        Raises:
            ConfigError: there is no such segmenter, or it cannot take the user words.
        """
        self._watched, self._recipe = watched, recipe
        self._rule = Rule(watched.setting)
        words = replace(recipe, compared_by="words", sketches=False)
        self._recorder, self._recording = TokenRecorder(stop_words_of(recipe)), Lock()
        self._words = Fingerprinter(words, self._recorder)
        by_grams = replace(recipe, compared_by="grams", sketches=True, long_grams=watched.rule.long_grams)
        self._grams = Fingerprinter(by_grams)

    def apply(self, row_a: SourceRow, row_b: SourceRow, is_rejected: IsRejected) -> AppliedRule:
        """Compare two rows as a scan does, and also by all other measures.

        Args:
            row_a: the one row.
            row_b: the other.
            is_rejected: returns whether people have labelled texts of these digests as no duplicates.
        """
        columns = compared_columns(
            self._recipe.columns, self._recipe.normaliser, [row_a.values, row_b.values]
        )
        rows = [[[texts[i]] for texts in columns] for i in (0, 1)]
        within = [[row_a.within], [row_b.within]]
        # One row at a time, since a text of megabytes takes many times its size while it is segmented.
        recorded = [self._record(row, agree) for row, agree in zip(rows, within, strict=True)]
        words, tokens = joined_rows([done for done, _ in recorded]), [tokens for _, tokens in recorded]
        # Known rows are not segmented a second time.
        known = [[digest] for digest in words.digests]
        by_grams = partial(self._grams.fingerprint_compared, compares_known=True)
        grams = joined_rows([*map(by_grams, rows, within, known)])
        are_exact_duplicates = words.digests[0] == words.digests[1] != NO_FEATURES_DIGEST
        distance = _distance(words, are_exact_duplicates)
        measured = self._measured(words, grams, distance)
        tests = self._tests(row_a, row_b, measured)
        if not are_exact_duplicates and is_rejected(*words.digests):
            tests.append(RuleTest(REJECTED, passed=False))
        is_pair = bool(self._rule.decide(measured)[0]) and all(test.passed for test in tests)
        decision = _decision(are_exact_duplicates, distance, is_pair)
        return AppliedRule(
            words,
            without_frames(columns, self._recipe.frames),
            [[self._left_out(text, i) for text in texts] for i, texts in enumerate(columns)],
            tokens,
            decision,
            distance,
            self._similarities(measured),
            tuple(self._candidate_tests(rows, distance, grams)),
            tuple(tests),
            _kind(decision, tests, int(measured.kinds[self._watched.rule.similarity][0])),
        )

    def _measured(
        self, words: FingerprintedRows, grams: FingerprintedRows, distance: int | None
    ) -> MeasuredPairs:
        """Return the pair of the two rows, measured by all measures."""
        details = grams.details
        return MeasuredPairs(
            np.array([FAR if distance is None else distance], np.int16),
            np.array([shares_enough(grams.sketches, 0, 1) and distance is not None], np.bool_),
            {
                name: _similarity(name, grams if measure.features == "grams" else words)
                for name, measure in MEASURES.items()
            },
            edit_similarities(details.starts, details.values, *_FIRST_AND_SECOND),
            long_similarities(details, *_FIRST_AND_SECOND),
            {self._watched.rule.similarity: self._packed_kind(words, grams)},
            which_have_other_numbers(details.starts, details.values, *_FIRST_AND_SECOND),
        )

    def _similarities(self, measured: MeasuredPairs) -> dict[str, float]:
        """Return the similarities by all measures, and by edits and long grams where these apply."""
        setting = self._rule.setting
        scores = {name: float(measured.similarity(replace(setting, similarity=name))[0]) for name in MEASURES}
        edit_similarity = float(measured.edit_similarities[0])
        if not math.isnan(edit_similarity):
            scores[EDIT_SIMILARITY] = edit_similarity
        if measured.long_scores is not None and measured.long_scores[0] < 1:
            scores[LONG_GRAMS] = float(measured.long_scores[0])
        return scores

    def _record(
        self, row: list[list[str]], within: list[str | None]
    ) -> tuple[FingerprintedRows, RecordedTokens]:
        """Return (a row after steps 2 to 4, the tokens of its text columns)."""
        with self._recording:  # another thread would add its tokens
            self._recorder.clear()
            done = self._words.fingerprint_compared(row, within, [None])
            tokens = self._recorder.take()
        # If nothing but a frame has features, the texts are segmented again with it.
        count = sum(column.kind == "text" for column in self._recipe.columns)
        return done, replace(tokens, texts=tokens.texts[:count])

    def _left_out(self, text: str, column: int) -> tuple[str, ...]:
        return tuple(text[start:end] for start, end in frame_spans(text, column, self._recipe.frames))

    def _packed_kind(self, words: FingerprintedRows, grams: FingerprintedRows) -> NDArray[np.uint8]:
        """Return uint8[1]: the packed kind of the two rows."""
        measure = self._rule.measure
        compared = grams if measure is not None and measure.features == "grams" else words
        return self._rule.kinds(compared.compared([None, None]), *_FIRST_AND_SECOND)

    def _candidate_tests(
        self, rows: list[list[list[str]]], distance: int | None, grams: FingerprintedRows
    ) -> Iterator[RuleTest]:
        """Yield the result of each candidate generator that has a hash of one of the rows, and of SimHash."""
        radius = self._watched.rule.radius
        yield RuleTest(SIMHASH, distance is not None and distance <= radius, distance, radius)
        if not self._watched.rule.sketches:
            return
        # One row at a time, as above.
        of_rows = [self._grams.hashes_by_generator(row) for row in rows]
        common = {
            generator: _count_common(of_rows[0][generator].values, of_rows[1][generator].values)
            for generator in HASH_GENERATORS
            if any(generator in found and found[generator].values.size for found in of_rows)
        }
        all_of_share = sum(count for generator, count in common.items() if not generator.one_is_enough)
        for generator, count in common.items():
            least = 1 if generator.one_is_enough else int(least_in_common(grams.sketches.counts.min()))
            is_enough = count > 0 if generator.one_is_enough else count > 0 and all_of_share >= least
            yield RuleTest(generator.name, is_enough, count, least)

    def _tests(self, row_a: SourceRow, row_b: SourceRow, measured: MeasuredPairs) -> list[RuleTest]:
        rule = self._watched.rule
        tests = [RuleTest(WITHIN, row_a.within == row_b.within)] if self._watched.within else []
        if rule.similarity != NO_SIMILARITY:
            name = EDIT_SIMILARITY if self._rule.has_few_edits(measured)[0] else rule.similarity
            score = float(self._rule.similarities(measured)[0])
            threshold = float(self._rule.thresholds(measured)[0])
            tests.append(RuleTest(name, score >= threshold, score, threshold))
        if self._rule.compares_numbers(measured)[0]:
            tests.append(RuleTest(NUMBERS, not self._rule.has_other_numbers(measured)[0]))
        if self._watched.exclude_kinds:
            tests.append(RuleTest(EXCLUDED, bool(self._rule.is_kept(measured)[0])))
        return tests


def _kind(decision: Decision, tests: Sequence[RuleTest], packed: int) -> PairKind:
    if decision is Decision.COPIES:
        return EXACT_DUPLICATES
    is_left_out = any(test.name == EXCLUDED and not test.passed for test in tests)
    return PairKind.of(packed) if decision is Decision.DUPLICATE_PAIR or is_left_out else NO_KIND


def _decision(are_exact_duplicates: bool, distance: int | None, is_pair: bool) -> Decision:
    if are_exact_duplicates:
        return Decision.COPIES
    if distance is None:
        return Decision.TOO_LITTLE_TEXT
    return Decision.DUPLICATE_PAIR if is_pair else Decision.NO_PAIR


def _count_common(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> int:
    """Return how many hashes are equal but for their lowest bits, which are replaced in a sketch."""
    return int(np.intersect1d(one | np.uint64(1), other | np.uint64(1)).size)


def _distance(words: FingerprintedRows, are_exact_duplicates: bool) -> int | None:
    if are_exact_duplicates:
        return 0
    if not words.has_fingerprint.all():
        return None
    a, b = words.fingerprints.tolist()
    return int(a ^ b).bit_count()


def _similarity(measure: str, rows: FingerprintedRows) -> NDArray[np.float64]:
    features = rows.features
    return similarities(measure, features.starts, features.hashes, features.weights, *_FIRST_AND_SECOND)


def _is_close(stored: float | None, now: float | None) -> bool:
    return stored is not None and now is not None and math.isclose(stored, now, abs_tol=1e-9)
