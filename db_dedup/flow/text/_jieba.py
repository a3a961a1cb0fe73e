"""The modes of jieba. jieba is the reference; `_rust_jieba` gives the tokens of precise mode much faster."""

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from db_dedup.flow.text._hmm import load_tables
from db_dedup.flow.text._rust_jieba import DifferentTokensError, IsWord, RustJieba, rejoined
from db_dedup.light_imports import without_pkg_resources

_log = logging.getLogger(__name__)

Cut = Callable[[Sequence[str]], list[str]]
"""Texts -> their tokens, with a "\\n" token after each text."""

_MEMO_ENTRIES: Final = 50_000
_LONGEST_KEPT: Final = 64
"""Characters of a token in the cache: so many of any length would not fit into memory."""
_HAN_WORD = re.compile("[\u4e00-\u9fd5]{2,}")


def precise_jieba(user_words: Sequence[str] = ()) -> tuple[Cut, IsWord]:
    """Return the fastest function that cuts as jieba's precise mode with HMM, and its dictionary's test."""
    reference = PythonJieba(user_words) if user_words else None
    try:
        if reference is None:
            fast = RustJieba(import_jieba().finalseg)
            return fast.cut, fast.is_word
        if reference.is_portable:
            fast = RustJieba(import_jieba().finalseg, reference.user_words, reference.surplus)
            return fast.cut, fast.is_word
    except (ImportError, DifferentTokensError) as error:
        _log.warning("jieba does the work of rjieba, with the same result but slowly: %s", error)
    reference = reference or PythonJieba()
    return reference.cut, reference.is_word


class PythonJieba:
    """jieba with a dictionary of its own, which other code of the process that uses jieba does not share.

    The dictionary takes a second and 80 MB to load. jieba's cache file in the temporary folder is not used.

    Attributes:
        user_words: the words that the lines of the user dictionary set, with their frequencies.

    Raises:
        ValueError: a line is not one of a user dictionary.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        jieba = import_jieba()
        self._tokenizer = tokenizer = jieba.Tokenizer()
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
        tokenizer.initialized = True
        self.user_words: dict[str, int] = {}
        for line in lines:
            self._add_line(line.strip().lstrip("\ufeff"), jieba.re_userdict)
        self._in_sentence, self._white_space = jieba.re_han_default, jieba.re_skip_default
        self._tables = load_tables(jieba.finalseg)
        # jieba keeps the words of frequency 0 in a set that the whole process shares: split here instead.
        self._banned = frozenset(
            word for word, frequency in self.user_words.items() if not frequency and _HAN_WORD.fullmatch(word)
        )

    @property
    def is_portable(self) -> bool:
        """Whether `RustJieba` can take the user words; it would cut ASCII words as joined letters."""
        return all(0 < f < 2**53 and not word.isascii() for word, f in self.user_words.items())

    @property
    def surplus(self) -> int:
        """By how much the dictionary's total exceeds its sum: jieba counts a repeated word again."""
        return int(self._tokenizer.total - sum(self._tokenizer.FREQ.values()))

    def cut(self, texts: Sequence[str]) -> list[str]:
        """Return the tokens of precise mode with HMM."""
        tokens: list[str] = []
        for text in texts:
            for part in self._in_sentence.split(text):
                tokens += self._cut_sentence(part) if self._in_sentence.match(part) else self._between(part)
            tokens.append("\n")
        if self._banned.isdisjoint(tokens):
            return tokens
        return [part for token in tokens for part in (token if token in self._banned else (token,))]

    def cut_full(self, texts: Sequence[str]) -> list[str]:
        """Return the tokens of full mode: every dictionary word in a text, without jieba's empty tokens."""
        tokens: list[str] = []
        for text in texts:
            tokens += filter(None, self._tokenizer.cut(text, cut_all=True))
            tokens.append("\n")
        return tokens

    def is_word(self, token: str) -> bool:
        """Return whether the dictionary has this token as a word, not only as the beginning of a word."""
        return bool(self._tokenizer.FREQ.get(token))

    def _cut_sentence(self, sentence: str) -> list[str]:
        """Return the words of a sentence: jieba's route through its dictionary, then the HMM.

        jieba's own `cut` asks an HMM that the whole process shares: a host that deletes a word from its
        dictionary would change the tokens.
        """
        route: dict[int, tuple[float, int]] = {}
        self._tokenizer.calc(sentence, self._tokenizer.get_DAG(sentence), route)
        tokens: list[str] = []
        begin = place = 0
        while place < len(sentence):
            end = route[place][1] + 1
            if end - place > 1:
                tokens += [*self._cut_singles(sentence[begin:place]), sentence[place:end]]
                begin = end
            place = end
        return tokens + self._cut_singles(sentence[begin:])

    def _cut_singles(self, singles: str) -> list[str]:
        """Return the words of neighbours that the route leaves as single characters."""
        # A word of the dictionary that the route does not take stays apart.
        if len(singles) < 2 or self.is_word(singles):
            return list(singles)
        return rejoined(list(singles), singles, self._tables)

    def _between(self, text: str) -> Iterator[str]:
        """Yield the tokens between two sentences: white space, and single characters."""
        for part in self._white_space.split(text):
            yield from (part,) if self._white_space.match(part) else part

    def _add_line(self, line: str, form: re.Pattern[str]) -> None:
        if not line:
            return
        match = form.match(line)
        if match is None:
            raise ValueError(f"not a line of a user dictionary: {line!r}")
        word, frequency, _ = match.groups()
        if frequency and int(frequency) == 0:
            self._tokenizer.FREQ[word] = 0
        else:
            self._tokenizer.add_word(word, frequency)
        self.user_words[word] = self._tokenizer.FREQ[word]


class SearchWords(dict[str, tuple[str, ...]]):
    """token -> the shorter dictionary words in it, then itself: jieba's search mode, cached up to a limit."""

    def __init__(self, is_word: IsWord) -> None:
        super().__init__()
        self._is_word = is_word

    def __missing__(self, token: str) -> tuple[str, ...]:
        inner = [
            gram
            for size in (2, 3)
            if len(token) > size
            for gram in (token[i : i + size] for i in range(len(token) - size + 1))
            if self._is_word(gram)
        ]
        words = (*inner, token)
        if len(token) <= _LONGEST_KEPT:
            if len(self) >= _MEMO_ENTRIES:
                self.clear()
            self[token] = words
        return words


def import_jieba() -> Any:
    """Return the module jieba, imported without the warnings that it causes."""
    with warnings.catch_warnings(), without_pkg_resources():
        warnings.simplefilter("ignore")
        import jieba  # noqa: PLC0415 - many segmenters do without it

    return jieba
