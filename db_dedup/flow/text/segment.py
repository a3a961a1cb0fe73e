"""Step 3, first half: text -> tokens.

A segmenter is part of the recipe: its name and user words give the same tokens on every machine. The tokens
of the `jieba` segmenters include punctuation and spaces; the next step drops tokens without a letter, digit
or ideograph.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Final, Protocol

from db_dedup.flow.text._jieba import Cut, PythonJieba, SearchWords, precise_jieba
from db_dedup.flow.text._rust_jieba import IsWord
from db_dedup.light_imports import allow_blas
from db_dedup.records.frames import CUT
from db_dedup.records.pages import cut_pages

ENTRY_POINT_GROUP: Final = "db_dedup.segmenters"
JIEBA: Final = "jieba"
"""jieba's precise mode with HMM: without user words, `jieba_words` finds the same words much faster."""

# Long enough for rjieba to work without the interpreter's lock for most of the time, short enough for memory.
_BATCH_TEXTS: Final = 256
_BATCH_CHARACTERS: Final = 100_000

_BETWEEN_SENTENCES: Final = " ,;:!?。、"
"""Each is always a token of its own in jieba's precise mode, whatever is beside it and in the user words."""

Pieces = Callable[[str], Iterator[str]]


class Segmenter(Protocol):
    """Cuts the texts of one column, a batch at a time. Threads may share it."""

    name: str

    def cut_batch(self, texts: Sequence[str]) -> list[str]:
        """Return the tokens of all texts in order, with the token "\\n" after each text.

        Args:
            texts: normalised, so none holds a newline.
        """
        ...


def make_segmenter(name: str, user_words: Sequence[str] = ()) -> Segmenter:
    """Find and prepare the segmenter of this name.

    Args:
        name: one of `SEGMENTERS`, or an entry point in the group "db_dedup.segmenters": a callable that takes
            the user words and returns a `Segmenter`.
        user_words: lines of a user dictionary as jieba reads them, `word [frequency] [tag]`, normalised as
            the texts are. Frequency 0 means that this is never a word.

    Raises:
        ValueError: no such name, user words for a segmenter without a dictionary, or a line that is not one.
    """
    if name in _CUTS_BY_DICTIONARY:
        return _Segmenter(name, _CUTS_BY_DICTIONARY[name](user_words), _pieces_by_dictionary(name))
    if name in _CUTS_BY_RULE:
        if user_words:
            raise ValueError(f"segmenter {name!r} has no dictionary, so it takes no user words")
        return _Segmenter(name, _line_by_line(_CUTS_BY_RULE[name]()), _pieces_by_rule(name))
    registered = entry_points(group=ENTRY_POINT_GROUP)
    if name not in registered.names:
        known = ", ".join([*SEGMENTERS, *sorted(registered.names)])
        raise ValueError(f"unknown segmenter {name!r}, there are: {known}")
    allow_blas()
    segmenter: Segmenter = registered[name].load()(user_words)
    return segmenter


def cut_in_batches(segmenter: Segmenter, texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the tokens of `cut_batch` in batches that fit into memory.

    A long text is divided into several batches, but only with a built-in segmenter.
    """
    for batch in cut_pages(texts, len, _BATCH_TEXTS, _BATCH_CHARACTERS):
        *others, last = batch
        if len(last) <= 2 * _BATCH_CHARACTERS or not isinstance(segmenter, _Segmenter):
            yield segmenter.cut_batch(batch)
            continue
        yield segmenter.cut_batch(others)
        for piece in segmenter.pieces(last):
            yield segmenter.cut_batch([piece])[:-1]
        yield ["\n"]


def sentence_parts(texts: Sequence[str]) -> Iterator[str]:
    """Yield some texts at a time, joined, each with a newline after it, for jieba's precise mode.

    A long text comes in several parts, so that it fits into memory; the last one ends with the newline.
    """
    for batch in cut_pages(texts, len, len(texts) or 1, _BATCH_CHARACTERS):
        *others, last = batch
        if len(last) <= 2 * _BATCH_CHARACTERS:
            yield "\n".join([*batch, ""])
            continue
        yield "\n".join([*others, ""])
        yield from _ended_by(_BETWEEN_SENTENCES)(last)
        yield "\n"


class _Segmenter:
    """A built-in segmenter.

    Attributes:
        pieces: divides a text where no token can reach across, so that the pieces have the tokens of the
            text.
    """

    def __init__(self, name: str, cut: Cut, pieces: Pieces) -> None:
        self.name, self.pieces = name, pieces
        self._cut = cut

    def cut_batch(self, texts: Sequence[str]) -> list[str]:
        if any("\n" in text for text in texts):
            raise ValueError("a text with a newline in it is not normalised")
        return self._cut(texts)


def _ended_by(ends: str) -> Pieces:
    """Return what divides a text into pieces of `_BATCH_CHARACTERS` or more that end with one of `ends`."""
    end = re.compile(f"[{ends}]")

    def pieces(text: str) -> Iterator[str]:
        begin = 0
        while found := end.search(text, begin + _BATCH_CHARACTERS):
            yield text[begin : found.end()]
            begin = found.end()
        yield text[begin:]

    return pieces


def _overlapping(size: int) -> Pieces:
    """Return what divides a text into pieces that overlap by `size` - 1 characters."""

    def pieces(text: str) -> Iterator[str]:
        # White space is left out, but what `CUT` separates stays apart.
        characters = CUT.join("".join(part.split()) for part in text.split(CUT))
        for first in range(0, max(1, len(characters) - size + 1), _BATCH_CHARACTERS):
            yield characters[first : first + _BATCH_CHARACTERS + size - 1]

    return pieces


def _line_by_line(cut: Callable[[str], list[str]]) -> Cut:
    def cut_lines(texts: Sequence[str]) -> list[str]:
        tokens: list[str] = []
        for text in texts:
            tokens += cut(text)
            tokens.append("\n")
        return tokens

    return cut_lines


def _character_runs(size: int) -> Callable[[str], list[str]]:
    """Return what cuts a text into all character n-grams of `size`, without white space.

    A shorter text is one token. No n-gram reaches across a `CUT`, and a shorter part beside one has none.
    """

    def cut(text: str) -> list[str]:
        if CUT in text:
            return [run for part in text.split(CUT) for run in cut(part) if len(run) == size]
        characters = "".join(text.split())
        if len(characters) <= size:
            return [characters] if characters else []
        return [characters[i : i + size] for i in range(len(characters) - size + 1)]

    return cut


@cache
def _words() -> Callable[[str], list[str]]:
    r"""Return what finds all `\w+` of a text; an accent or vowel sign of its own does not end a word.

    The result is cached: to find all marks takes longer than to cut a batch of a few changes.
    """
    marks = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M")
    return re.compile(rf"\w[\w{marks}]*").findall


def _pieces_by_dictionary(name: str) -> Pieces:
    # Full mode joins neighbouring signs.
    return _ended_by(" " if name == "jieba-full" else _BETWEEN_SENTENCES)


def _pieces_by_rule(name: str) -> Pieces:
    return _ended_by(" ") if name == "words" else _overlapping(int(name.removeprefix("chars:")))


def _jieba(user_words: Sequence[str]) -> tuple[Cut, IsWord]:
    return precise_jieba(user_words) if user_words else _default_jieba()


@cache
def _default_jieba() -> tuple[Cut, IsWord]:
    """Load jieba without user words, once a process: each time would take a tenth of a second."""
    return precise_jieba()


def _precise(user_words: Sequence[str]) -> Cut:
    return _jieba(user_words)[0]


def _search(user_words: Sequence[str]) -> Cut:
    cut, is_word = _jieba(user_words)
    words = SearchWords(is_word)
    return lambda texts: [word for token in cut(texts) for word in words[token]]


def _full(user_words: Sequence[str]) -> Cut:
    return PythonJieba(user_words).cut_full


_CUTS_BY_DICTIONARY: Final[dict[str, Callable[[Sequence[str]], Cut]]] = {
    JIEBA: _precise,
    "jieba-search": _search,
    "jieba-full": _full,
}
_CUTS_BY_RULE: Final[dict[str, Callable[[], Callable[[str], list[str]]]]] = {
    "words": _words,
    **{f"chars:{size}": partial(_character_runs, size) for size in range(1, 9)},
}

SEGMENTERS: Final = (*_CUTS_BY_DICTIONARY, *_CUTS_BY_RULE)
"""The built-in names: jieba's precise, search and full mode, spaced words, character n-grams of 1 to 8."""
