"""jieba's modes: jieba itself is the reference, `rjieba` does the same work about 16 times faster.

`rjieba` differs from jieba in two ways, and `RustJieba` repairs both by rule:

* It takes ideographs outside U+4E00..U+9FD5 for part of a sentence. To jieba each is a token that ends the
  sentence, so a stand-in that ends it for both goes in, and the ideograph comes back afterwards.
* It keeps letters and digits joined by ".", "_" or "-" in one token. Such a token begins and ends where jieba
  cuts too, so cutting the token alone by jieba's rule is exact. Dictionary words like "c++" stay whole.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from db_dedup.flow._hmm import find_rejoined, load_tables

Cut = Callable[[Sequence[str]], list[str]]
"""Texts -> their tokens, with a "\\n" token after each text."""

IsWord = Callable[[str], bool]
"""Whether a string is a word of the dictionary."""

# Long enough for two threads to overlap, short enough for the processor's cache.
_CALL_CHARACTERS: Final = 16_000
_MEMO_ENTRIES: Final = 50_000

_STAND_IN = "\0"
# "\r" would join the "\n" that ends a text; a lone surrogate has no UTF-8 form.
_STRANGER = re.compile("[\0\r\u3400-\u4dbf\u9fd6-\u9fff\ud800-\udfff\uf900-\ufaff\U00020000-\U0003ffff]")
_HALF_WIDTH = re.compile(r"([a-zA-Z0-9]+(?:\.[0-9]+)?%?)")
_HALF_WIDTH_REST = re.compile("[a-zA-Z0-9]+|[-+#&_%.]")
_HAN_WORD = re.compile("[\u4e00-\u9fd5]{2,}")


def precise_jieba(user_words: Sequence[str]) -> tuple[Cut, IsWord]:
    """The fastest cut that equals jieba's precise mode with HMM, and its dictionary's membership test.

    User words need jieba itself: `rjieba` gives a word without a frequency another one than jieba does.
    """
    if not user_words:
        try:
            fast = RustJieba()
        except ImportError:  # no wheel for this platform
            pass
        else:
            return fast.cut, fast.is_word
    slow = PythonJieba(user_words)
    return slow.cut, slow.is_word


class PythonJieba:
    """jieba with a dictionary of its own, which the process's other users of jieba neither see nor change.

    The dictionary takes 80 MB and a second to load; jieba's cache file in the temporary folder is left alone.
    """

    def __init__(self, user_words: Iterable[str] = ()) -> None:
        jieba = _import_jieba()
        self._tokenizer = jieba.Tokenizer()
        self._tokenizer.FREQ, self._tokenizer.total = jieba.Tokenizer.gen_pfdict(self._tokenizer.get_dict_file())
        self._tokenizer.initialized = True
        self._banned = self._add_words(user_words, jieba.re_userdict)

    def cut(self, texts: Sequence[str]) -> list[str]:
        """Precise mode with HMM."""
        tokens: list[str] = []
        for text in texts:
            tokens += self._tokenizer.cut(text)
            tokens.append("\n")
        if self._banned.isdisjoint(tokens):
            return tokens
        return [part for token in tokens for part in (token if token in self._banned else (token,))]

    def cut_full(self, texts: Sequence[str]) -> list[str]:
        """Full mode: every dictionary word in the text; jieba's empty tokens around spaces are left out."""
        tokens: list[str] = []
        for text in texts:
            tokens += filter(None, self._tokenizer.cut(text, cut_all=True))
            tokens.append("\n")
        return tokens

    def is_word(self, token: str) -> bool:
        """Whether the dictionary holds this as a word, not only as a word's beginning."""
        return bool(self._tokenizer.FREQ.get(token))

    def _add_words(self, lines: Iterable[str], line_form: re.Pattern[str]) -> frozenset[str]:
        """Do what `load_userdict` does; the result holds the words of frequency 0, never to be a token.

        jieba keeps those in a set that the whole process shares, so they are split here instead.
        """
        frequencies = self._tokenizer.FREQ
        words = set()
        for line in filter(None, (line.strip().lstrip("\ufeff") for line in lines)):
            match = line_form.match(line)
            if match is None:
                raise ValueError(f"not a line of a user dictionary: {line!r}")
            word, frequency, _ = match.groups()
            if frequency and int(frequency) == 0:
                frequencies[word] = 0
                words.add(word)
            else:
                self._tokenizer.add_word(word, frequency)
        return frozenset(word for word in words if not frequencies[word] and _HAN_WORD.fullmatch(word))


class RustJieba:
    """jieba's precise mode with HMM, token for token: the dictionary's part by `rjieba`, the HMM's by `_hmm`.

    Raises:
        ImportError: `rjieba` is not installed.
    """

    def __init__(self) -> None:
        from rjieba import Jieba

        _import_jieba()
        from jieba import finalseg

        jieba = Jieba()
        jieba.add_word("\n\n", 3, None)
        self._cut_by_dictionary: Callable[[str, bool], list[str]] = jieba.cut
        self.is_word: IsWord = jieba.has_word
        self._tables = load_tables(finalseg)

    def cut(self, texts: Sequence[str]) -> list[str]:
        """One call for many texts, because the GIL is free only inside a call."""
        tokens: list[str] = []
        for lines in _join(texts):
            tokens += self._cut_lines(lines)
        return tokens

    def _cut_lines(self, lines: str) -> list[str]:
        strangers = _STRANGER.findall(lines)
        if not strangers:
            return self._cut_familiar(lines)
        tokens = self._cut_familiar(_STRANGER.sub(_STAND_IN, lines))
        next_stranger = iter(strangers).__next__
        return [next_stranger() if token == _STAND_IN else token for token in tokens]

    def _cut_familiar(self, lines: str) -> list[str]:
        tokens = self._cut_by_dictionary(lines, False)
        codes = np.frombuffer(lines.encode("utf-32-le"), np.uint32)
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        rejoined: list[str] = []
        done = 0
        for first, end, run_first, run_end in find_rejoined(codes, lengths, *self._tables).tolist():
            if run_first >= 0 and self._stays_single(tokens, run_first, run_end):
                continue
            rejoined += tokens[done:first]
            joined = "".join(tokens[first:end])
            if run_first >= 0:
                rejoined.append(joined)
            else:
                rejoined += filter(None, _HALF_WIDTH.split(joined))
            done = end
        return rejoined + tokens[done:] if done else tokens

    def _stays_single(self, tokens: list[str], first: int, end: int) -> bool:
        """Whether a run of ideographs is a word of the dictionary, which jieba then does not ask the HMM about.

        Only if the run is all that stands between two words: letters, digits or signs at its side belong to it.
        """
        if not self.is_word("".join(tokens[first:end])):
            return False
        before, after = tokens[first - 1] if first else "\n", tokens[end]
        return not (_HALF_WIDTH_REST.fullmatch(before) or _HALF_WIDTH_REST.fullmatch(after))


class SearchWords(dict[str, tuple[str, ...]]):
    """token -> its shorter dictionary words, then itself: jieba's search mode, remembered up to a limit."""

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
        if len(self) >= _MEMO_ENTRIES:
            self.clear()
        self[token] = words = (*inner, token)
        return words


def _join(texts: Sequence[str]) -> Iterator[str]:
    """Lines of about `_CALL_CHARACTERS` together, each ended by a newline."""
    begin = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= _CALL_CHARACTERS or end == len(texts):
            yield "\n".join(texts[begin:end]) + "\n"
            begin, size = end, 0


def _import_jieba() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its regular expressions and pkg_resources warn when compiled
        import jieba

    return jieba
