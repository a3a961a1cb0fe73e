"""Step 3, first half: text -> tokens.

A segmenter is part of the recipe: its name and user words give the same tokens on every machine. The `jieba`
ones leave punctuation and spaces in as tokens; the next step drops what holds no letter, digit or ideograph.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Final, Protocol

from db_dedup.flow._jieba import Cut, PythonJieba, SearchWords, precise_jieba
from db_dedup.flow._rust_jieba import IsWord
from db_dedup.records.pages import cut_pages

ENTRY_POINT_GROUP: Final = "db_dedup.segmenters"

# Long enough for rjieba to work without the interpreter's lock for most of the time, short enough for memory.
_BATCH_TEXTS: Final = 256
_BATCH_CHARACTERS: Final = 100_000

_BETWEEN_SENTENCES: Final = " ,;:!?。、"
"""Each is a token by itself in jieba's precise mode, whatever is beside it and whatever words a user adds."""

Pieces = Callable[[str], Iterator[str]]


class Segmenter(Protocol):
    """Cuts the texts of one column, a batch at a time. Threads may share it."""

    name: str

    def cut_batch(self, texts: Sequence[str]) -> list[str]:
        """Tokens of all texts in order, with the token "\\n" after each text.

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
    segmenter: Segmenter = registered[name].load()(user_words)
    return segmenter


def cut_in_batches(segmenter: Segmenter, texts: Iterable[str]) -> Iterator[list[str]]:
    """The tokens of `cut_batch`, no more at a time than fit the memory: a long text comes in several batches,
    where the segmenter is one of ours."""
    for batch in cut_pages(texts, len, _BATCH_TEXTS, _BATCH_CHARACTERS):
        *others, last = batch
        if len(last) <= 2 * _BATCH_CHARACTERS or not isinstance(segmenter, _Segmenter):
            yield segmenter.cut_batch(batch)
            continue
        yield segmenter.cut_batch(others)
        for piece in segmenter.pieces(last):
            yield segmenter.cut_batch([piece])[:-1]
        yield ["\n"]


class _Segmenter:
    """A segmenter of ours.

    Attributes:
        pieces: cuts a text where no token can reach across: the tokens of the pieces are those of the text.
    """

    def __init__(self, name: str, cut: Cut, pieces: Pieces) -> None:
        self.name, self.pieces = name, pieces
        self._cut = cut

    def cut_batch(self, texts: Sequence[str]) -> list[str]:
        if any("\n" in text for text in texts):
            raise ValueError("a text with a newline in it is not normalised")
        return self._cut(texts)


def _ended_by(ends: str) -> Pieces:
    """Pieces of some `_BATCH_CHARACTERS` or more that end with one of these characters."""
    end = re.compile(f"[{ends}]")

    def pieces(text: str) -> Iterator[str]:
        begin = 0
        while found := end.search(text, begin + _BATCH_CHARACTERS):
            yield text[begin : found.end()]
            begin = found.end()
        yield text[begin:]

    return pieces


def _overlapping(size: int) -> Pieces:
    """Pieces that each begin with the first character whose run is not yet in the piece before."""

    def pieces(text: str) -> Iterator[str]:
        characters = "".join(text.split())
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
    """Every run of `size` characters, white space left out; a shorter text is one token."""

    def cut(text: str) -> list[str]:
        characters = "".join(text.split())
        if len(characters) <= size:
            return [characters] if characters else []
        return [characters[i : i + size] for i in range(len(characters) - size + 1)]

    return cut


@cache
def _words() -> Callable[[str], list[str]]:
    r"""`\w+`, in which an accent or vowel sign that is a character of its own does not end the word.

    Made once: finding the marks takes longer than a batch of a few changes.
    """
    marks = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M")
    return re.compile(rf"\w[\w{marks}]*").findall


def _pieces_by_dictionary(name: str) -> Pieces:
    # Full mode joins signs that stand together.
    return _ended_by(" " if name == "jieba-full" else _BETWEEN_SENTENCES)


def _pieces_by_rule(name: str) -> Pieces:
    return _ended_by(" ") if name == "words" else _overlapping(int(name.removeprefix("chars:")))


def _jieba(user_words: Sequence[str]) -> tuple[Cut, IsWord]:
    return precise_jieba(user_words) if user_words else _default_jieba()


@cache
def _default_jieba() -> tuple[Cut, IsWord]:
    """Loaded once: its dictionary costs a process that scans or checks often a tenth of a second a time."""
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
    "jieba": _precise,
    "jieba-search": _search,
    "jieba-full": _full,
}
_CUTS_BY_RULE: Final[dict[str, Callable[[], Callable[[str], list[str]]]]] = {
    "words": _words,
    **{f"chars:{size}": partial(_character_runs, size) for size in range(1, 9)},
}

SEGMENTERS: Final = (*_CUTS_BY_DICTIONARY, *_CUTS_BY_RULE)
"""The built-in names: jieba's precise, search and full mode, spaced words, runs of 1 to 8 characters."""
