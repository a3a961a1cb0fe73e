"""Compare two rows column by column: the shared tokens, and the bits that each column makes different."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.flow.features.counting import Features, concatenate_features, count_features, hash_values
from db_dedup.flow.fingerprints.bit_shares import bit_sums, share_differing_bits
from db_dedup.jobs.explain.applied_rule import AppliedRule
from db_dedup.jobs.explain.token_record import RecordedTokens
from db_dedup.records import ExplainedColumn, MarkedToken, SourceRow

MOST_TOKENS: Final = 20_000
"""The most tokens of a text that are shown; of a longer text those near the first differences."""
MOST_DIFFERENCES: Final = 50
"""The most runs of differing tokens that are shown of such a text."""
AROUND: Final = 20
"""Tokens that are shown on either side of a difference, and at either end of the text."""

_MARKS: Final[tuple[Literal["ignored", "differs", "shared"], ...]] = ("ignored", "differs", "shared")
_DIFFERS: Final = _MARKS.index("differs")


@dataclass(frozen=True)
class _Cut:
    """One column of one row.

    Attributes:
        tokens: the tokens that are shown.
        left_out: the number of tokens that are not shown.
        features: the features that this column adds to the row's fingerprint.
    """

    tokens: tuple[MarkedToken, ...]
    left_out: int
    features: Features


class ColumnExplainer:
    """Explains the columns of one recipe."""

    def __init__(self, watched: WatchedTable) -> None:
        self._columns = list(watched.columns.items())
        self._term_frequency = watched.rule.term_frequency

    def explain(self, row_a: SourceRow, row_b: SourceRow, applied: AppliedRule) -> list[ExplainedColumn]:
        """Return the explanation of every column of two rows.

        Args:
            row_a: the one row.
            row_b: the other.
            applied: the decision of the rule about them.
        """
        own_a, own_b = (_features_of(applied.words.features, i) for i in (0, 1))
        tokens = self._tokens_by_column(applied)
        cuts_a, cuts_b = self._cuts(tokens[0], own_a, own_b), self._cuts(tokens[1], own_b, own_a)
        bits = _differing_bits(cuts_a, cuts_b) if applied.words.has_fingerprint.all() else None
        return [
            ExplainedColumn(
                name=name,
                kind=column.kind,
                weight=column.weight,
                value_a=row_a.values[i],
                value_b=row_b.values[i],
                text_a=applied.columns[i][0],
                text_b=applied.columns[i][1],
                tokens_a=cuts_a[i].tokens,
                tokens_b=cuts_b[i].tokens,
                left_out_a=cuts_a[i].left_out,
                left_out_b=cuts_b[i].left_out,
                differing_bits=None if bits is None else bits[i],
                frames_a=applied.frames[i][0],
                frames_b=applied.frames[i][1],
            )
            for i, (name, column) in enumerate(self._columns)
        ]

    def _tokens_by_column(self, applied: AppliedRule) -> list[list[RecordedTokens]]:
        """Return for each row and each column its tokens; a value is one token."""
        return [self._tokens_of_row(applied, row) for row in (0, 1)]

    def _tokens_of_row(self, applied: AppliedRule, row: int) -> list[RecordedTokens]:
        recorded = applied.tokens[row]
        of_texts = iter(recorded.texts)
        return [
            _value_token(name, applied.columns[i][row])
            if column.kind == "value"
            else RecordedTokens(recorded.words, recorded.hashes, [next(of_texts)])
            for i, (name, column) in enumerate(self._columns)
        ]

    def _cuts(
        self, columns: Sequence[RecordedTokens], own: NDArray[np.uint64], other: NDArray[np.uint64]
    ) -> list[_Cut]:
        return [
            self._cut(tokens, column.weight, own, other)
            for tokens, (_, column) in zip(columns, self._columns, strict=True)
        ]

    def _cut(
        self, tokens: RecordedTokens, weight: int, own: NDArray[np.uint64], other: NDArray[np.uint64]
    ) -> _Cut:
        """Mark the tokens of one text; a token that is no feature of the row is marked as ignored."""
        [text] = tokens.texts
        is_own = _is_among(own, tokens.hashes)
        # Marks are computed for different tokens, since a long text repeats a token thousands of times.
        marks = np.where(is_own, 1 + _is_among(other, tokens.hashes), 0).astype(np.int8)
        is_given = near_differences(marks[text] == _DIFFERS)
        stream = np.concatenate([tokens.hashes[text[is_own[text]]], hash_values("", [""])[1:]])
        return _Cut(
            tuple(_given(tokens.words, text, marks, is_given)),
            int(text.size - np.count_nonzero(is_given)),
            count_features([stream], [weight], self._term_frequency),
        )


def near_differences(differs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return bool[n]: the tokens of a text that are shown.

    Args:
        differs: bool[n], the tokens that the other row does not have.
    """
    if differs.size <= MOST_TOKENS:
        return np.ones(differs.size, np.bool_)
    begins = differs & ~np.concatenate([[False], differs[:-1]])
    is_early = differs & (np.cumsum(begins) <= MOST_DIFFERENCES)
    counts = np.concatenate([[0], np.cumsum(is_early)])
    places = np.arange(differs.size)
    is_near: NDArray[np.bool_] = (
        counts[np.minimum(places + AROUND + 1, differs.size)] > counts[np.maximum(places - AROUND, 0)]
    )
    is_near[:AROUND] = True
    is_near &= np.cumsum(is_near) <= MOST_TOKENS - AROUND
    is_near[-AROUND:] = True
    return is_near


def _given(
    words: Sequence[str], text: NDArray[np.int32], marks: NDArray[np.int8], is_given: NDArray[np.bool_]
) -> Iterator[MarkedToken]:
    """Yield the tokens that are shown, and one token in place of each run of tokens that are not."""
    places = np.flatnonzero(is_given)
    numbers = text[places].tolist()
    known = {number: MarkedToken(words[number], _MARKS[marks[number]]) for number in set(numbers)}
    gaps = (np.diff(places, prepend=-1) - 1).tolist()
    for number, gap in zip(numbers, gaps, strict=True):
        if gap:
            yield MarkedToken(f"… {gap:,} tokens …", "left_out")
        yield known[number]


def _value_token(name: str, text: str) -> RecordedTokens:
    words = [text] if text else []
    return RecordedTokens(words, hash_values(name, words)[::2], [np.arange(len(words), dtype=np.int32)])


def _differing_bits(cuts_a: Sequence[_Cut], cuts_b: Sequence[_Cut]) -> list[float]:
    shares: list[float] = share_differing_bits(_bit_sums(cuts_a), _bit_sums(cuts_b)).tolist()
    return shares


def _bit_sums(cuts: Sequence[_Cut]) -> NDArray[np.int64]:
    """Return int64[columns, 64]: the bit sums of each column of a row, which add up to those of the row."""
    features = concatenate_features([cut.features for cut in cuts])
    return bit_sums(features.starts, features.hashes, features.weights)


def _is_among(features: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return bool[n]: which of n hashes are among the features, which are in ascending order."""
    if not features.size:
        return np.zeros(hashes.size, np.bool_)
    places = np.minimum(np.searchsorted(features, hashes), features.size - 1)
    is_among: NDArray[np.bool_] = features[places] == hashes
    return is_among


def _features_of(features: Features, row: int) -> NDArray[np.uint64]:
    return features.hashes[features.starts[row] : features.starts[row + 1]]
