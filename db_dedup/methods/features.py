"""Features of texts: words as a set or weighted, feature codes, shingles.

Each function takes a corpus of n texts and a hash function of tokens, and returns the record of the flow:
for each text its distinct features with their weights. A text without tokens has no features. Hashes of 0 and
1 mark other things in the flow's streams, so 2 is added to them.

Weights are whole numbers, so that SimHash adds them exactly: a weight of w is stored as w * `UNIT`, rounded.
All comparisons depend on the ratios of weights alone. A feature whose weight is 0 is left out.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import InvalidArgumentError
from db_dedup.flow.features.counting import Features, count_features
from db_dedup.methods._rank import rank
from db_dedup.methods.corpus import Corpus, HashTokens, MakeFeatures
from db_dedup.methods.hashes import cityhash64

UNIT: Final = 1 << 32
"""The stored weight of a real weight of 1."""

DAMPING: Final = 0.85
WINDOW: Final = 5
CODE_LENGTH: Final = 5

_ROW_END: Final = 1
_TOLERANCE: Final = 1e-9
_MOST_ROUNDS: Final = 200
_BETWEEN_WORDS: Final = "\x1f"
_MARKS: Final = re.compile(r"[^\w\s]+(?:\s+[^\w\s]+)*|_+")


def unweighted(corpus: Corpus, hash_tokens: HashTokens = cityhash64) -> Features:
    """Return each distinct word with the weight 1 (P2, and "none" in P4). Time: linear in the words."""
    return _counted(corpus.tokens, hash_tokens, "set")


def frequency(corpus: Corpus, hash_tokens: HashTokens = cityhash64) -> Features:
    """Return each distinct word, weighted by how often it occurs (P1, P5). Time: linear in the words."""
    return _counted(corpus.tokens, hash_tokens, "raw")


def relative_frequency(corpus: Corpus, hash_tokens: HashTokens = cityhash64) -> Features:
    """Return each distinct word, weighted by its share of the text's words, times `UNIT` (P4).

    Within a text the weights have exactly the ratios of `frequency`, so that SimHash and the cosine are those
    of `frequency`. Time: linear in the words.
    """
    counted = frequency(corpus, hash_tokens)
    units = np.rint(UNIT / np.maximum(_totals(counted), 1)).astype(np.int64)
    return replace(counted, weights=counted.weights * np.repeat(units, counted.counts))


def tf_idf(corpus: Corpus, hash_tokens: HashTokens = cityhash64) -> Features:
    """Return each distinct word, weighted by its share of the text's words times its IDF, times `UNIT` (P4,
    P5).

    The IDF of a word that d of n texts contain is ln(n / d). A word that all texts contain weighs 0 and is
    left out, so that a corpus of equal texts has no features. Time: sorts the words of all texts.

    Raises:
        InvalidArgumentError: the corpus has only one text: every word would weigh 0.
    """
    if len(corpus.texts) == 1:
        raise InvalidArgumentError("TF-IDF needs a corpus: with a single text every word weighs 0")
    counted = frequency(corpus, hash_tokens)
    return _weighted(counted, _shares(counted) * inverse_document_frequencies(counted))


def text_rank(
    corpus: Corpus, hash_tokens: HashTokens = cityhash64, *, window: int = WINDOW, damping: float = DAMPING
) -> Features:
    """Return each distinct word, weighted by its TextRank in the text, times `UNIT` (P4, P5: damping 0.85).

    The words are the vertices of a graph, with an edge for each time that two of them are neighbours. The
    rank of a word is 1 - damping + damping * the sum, over its edges, of the rank of the other word divided
    by the number of that word's edges. A word without neighbours has 1 - damping. Time: up to
    `_MOST_ROUNDS` rounds, each linear in the words times the window.

    Args:
        corpus: n texts.
        hash_tokens: hash function.
        window: two words are neighbours if they are fewer than so many places apart. The papers do not name
            it; 5 is that of jieba.
        damping: 0 to 1.

    Raises:
        InvalidArgumentError: a window below 2, or a damping outside of 0 to 1.
    """
    if window < 2:
        raise InvalidArgumentError("a window has at least 2 words, not {window}", window=window)
    if not 0 <= damping < 1:
        raise InvalidArgumentError("damping must be at least 0 and below 1, not {damping}", damping=damping)
    stream = _hashed_stream(corpus.tokens, hash_tokens)
    words = count_features([stream.copy()], [1], "set")
    ranks = rank(stream, words.starts, words.hashes, window, damping, _TOLERANCE, _MOST_ROUNDS)
    return _weighted(words, ranks)


def feature_codes(
    corpus: Corpus, hash_tokens: HashTokens = cityhash64, *, length: int = CODE_LENGTH
) -> Features:
    """Return the characters around each punctuation mark, each such code with the weight 1 (P5).

    Marks with nothing but white space between them count as one. A code is the last `length` characters
    before it and the first `length` after it, white space and other marks left out, within the paragraph (a
    line). P5 says "length 5"; it is read as five on each side. A text without marks has no features.
    Segmenters and stop words change nothing. Time: linear in the characters.

    Raises:
        InvalidArgumentError: a length below 1.
    """
    if length < 1:
        raise InvalidArgumentError("a code has at least 1 character, not {length}", length=length)
    codes = [
        list(chain.from_iterable(_codes(line, length) for line in text.splitlines())) for text in corpus.texts
    ]
    return _counted(codes, hash_tokens, "set")


def shingles(words: int) -> MakeFeatures:
    """Return what makes features of all runs of so many consecutive words (P3).

    A text of n words has n - words + 1 of them, each with the weight 1, so that one that occurs twice weighs
    2. A shorter text is one shingle. P3 does not weigh them and does not name the number of words. Time:
    linear in the words times their number in a shingle.

    Raises:
        InvalidArgumentError: fewer than one word.
    """
    if words < 1:
        raise InvalidArgumentError("a shingle has at least 1 word, not {words}", words=words)

    def make(corpus: Corpus, hash_tokens: HashTokens = cityhash64) -> Features:
        runs = [
            [_BETWEEN_WORDS.join(tokens[i : i + words]) for i in range(max(1, len(tokens) - words + 1))]
            if tokens
            else []
            for tokens in corpus.tokens
        ]
        return _counted(runs, hash_tokens, "raw")

    return make


def strongest(make: MakeFeatures, count: int) -> MakeFeatures:
    """Return what keeps of these features the `count` with the largest weights of each text: its keywords.

    P4 and P5 combine weights with comparisons of sets, for which a weight counts only if it decides what is
    in the set. They do not say how; this is one way. Of equal weights the smaller hashes are kept. Time:
    sorts the features.

    Raises:
        InvalidArgumentError: a count below 1.
    """
    if count < 1:
        raise InvalidArgumentError("at least 1 feature must be kept, not {count}", count=count)

    def make_strongest(corpus: Corpus, hash_tokens: HashTokens = cityhash64) -> Features:
        features = make(corpus, hash_tokens)
        rows = np.repeat(np.arange(features.starts.size - 1), features.counts)
        order = np.lexsort((-features.weights, rows))
        is_kept = np.zeros(rows.size, np.bool_)
        is_kept[order] = np.arange(rows.size) - features.starts[rows] < count
        return _kept(features, features.weights, is_kept)

    return make_strongest


def inverse_document_frequencies(features: Features) -> NDArray[np.float64]:
    """Return float64[m]: for each feature of each row ln(number of rows / number of rows that have it)."""
    rows = features.starts.size - 1
    _, places, counts = np.unique(features.hashes, return_inverse=True, return_counts=True)
    result: NDArray[np.float64] = np.log(rows / counts[places])
    return result


def _codes(line: str, length: int) -> Iterable[str]:
    # The letters of the line are joined once: to filter the line for each mark would take the square of it.
    pieces = [_letters(piece) for piece in _MARKS.split(line)]
    letters = "".join(pieces)
    for place in accumulate(map(len, pieces[:-1])):
        before, after = letters[max(0, place - length) : place], letters[place : place + length]
        if before or after:
            yield before + _BETWEEN_WORDS + after


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _hashed_stream(token_lists: Iterable[Sequence[str]], hash_tokens: HashTokens) -> NDArray[np.uint64]:
    """Return the hashes of all tokens in their order, after each row the mark of its end."""
    vocabulary: dict[str, int] = {}
    numbers: list[int] = []
    for tokens in token_lists:
        numbers += [vocabulary.setdefault(token, len(vocabulary)) for token in tokens]
        numbers.append(-1)
    hashes = hash_tokens(list(vocabulary))
    hashes = np.where(hashes <= _ROW_END, hashes + np.uint64(2), hashes)
    # The number -1 of a row's end takes the last place.
    return np.append(hashes, np.uint64(_ROW_END))[np.array(numbers, np.int64)]


def _counted(token_lists: Sequence[Sequence[str]], hash_tokens: HashTokens, term_frequency: str) -> Features:
    return count_features([_hashed_stream(token_lists, hash_tokens)], [1], term_frequency)


def _totals(features: Features) -> NDArray[np.int64]:
    """Return int64[n]: the sum of the weights of each row."""
    running = np.append(0, np.cumsum(features.weights))
    return np.diff(running[features.starts])


def _shares(counted: Features) -> NDArray[np.float64]:
    """Return float64[m]: of each feature its share of the weights of its row."""
    result: NDArray[np.float64] = counted.weights / np.repeat(_totals(counted), counted.counts)
    return result


def _weighted(features: Features, weights: NDArray[np.float64]) -> Features:
    """Return the features with other weights, times `UNIT`, without those that weigh 0."""
    stored = np.rint(weights * UNIT).astype(np.int64)
    return _kept(features, stored, stored > 0)


def _kept(features: Features, weights: NDArray[np.int64], is_kept: NDArray[np.bool_]) -> Features:
    kept_before = np.append(0, np.cumsum(is_kept))
    return Features(kept_before[features.starts], features.hashes[is_kept], weights[is_kept])
