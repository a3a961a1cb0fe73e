"""jieba's precise mode with HMM, token for token, at more than ten times its speed.

`rjieba` looks the words up. Without its HMM it cuts as jieba without HMM does, after three corrections:

* A word that is twice in jieba's dictionary counts twice in jieba's total, but once in that of `rjieba`.
  Equal sums of logarithms are common, for example in "哈哈哈哈哈", and then the last bit decides. So the
  total is made equal.
* `rjieba` takes ideographs outside U+4E00..U+9FD5 as part of a sentence. In jieba each of them is a token
  that ends the sentence. So each is replaced by a character that ends the sentence for both, and put back
  afterwards.
* `rjieba` returns letters and digits joined, and signs one by one. jieba with HMM joins "4.2" and "50%" and
  cuts "4.2ab". So such neighbours are cut again by jieba's rule.

The HMM, which joins single ideographs to words, is that of `_hmm`: the HMM of `rjieba` has numbers with fewer
digits, and cuts about one text in a hundred thousand at another place.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Final

import numpy as np

from db_dedup.flow._code_points import code_points
from db_dedup.flow.text._hmm import Tables, find_rejoined, load_tables

IsWord = Callable[[str], bool]
"""Whether a string is a word of the dictionary."""

# Long enough for two threads to overlap, short enough for the processor's cache.
_CALL_CHARACTERS: Final = 16_000

_STAND_IN: Final = "\0"
# "\r" would join the "\n" that ends a text; a lone surrogate has no UTF-8 form.
_REPLACED = re.compile("[\0\r\u3400-\u4dbf\u9fd6-\u9fff\ud800-\udfff\uf900-\ufaff\U00020000-\U0003ffff]")
_HALF_WIDTH = re.compile(r"([a-zA-Z0-9]+(?:\.[0-9]+)?%?)")
_UNJOINED = re.compile("[a-zA-Z0-9]+|[-+#&_%.]")

_NO_WORDS: Final[Mapping[str, int]] = MappingProxyType({})
_DEFAULT_SURPLUS: Final = 3
_NEVER_IN_A_SENTENCE: Final = "\n\n"
# These texts have equal sums: with another total or another order of adding, one of them is cut differently.
_CLOSE_CALLS: Final = (
    "人人/人/人人/人人/人人/比武/偷偷",
    "温温/温温/温温/温温/温/傗/唉/版/寨/升值/越/日/当即/肿/发表/一伙/跟/醉/章/来讲/蒙/趣味/抵",
)


class DifferentTokensError(Exception):
    """This version of rjieba does not look words up exactly as jieba does."""


class RustJieba:
    """Cuts as jieba would with the same user words. Threads may share it.

    Args:
        model: jieba's module `finalseg`, for the numbers of its HMM.
        user_words: word -> frequency; words of ASCII characters alone are not allowed.
        surplus: by how much jieba's total of the dictionary exceeds the sum of its words.

    Raises:
        ImportError: `rjieba` is not installed.
        DifferentTokensError: the installed version cuts differently from jieba.
    """

    def __init__(
        self, model: ModuleType, user_words: Mapping[str, int] = _NO_WORDS, surplus: int = _DEFAULT_SURPLUS
    ) -> None:
        from rjieba import Jieba  # noqa: PLC0415 - may be missing

        jieba = Jieba()
        self._cut_by_dictionary: Callable[[str, bool], list[str]] = jieba.cut
        self.is_word: IsWord = jieba.has_word
        self._tables = load_tables(model)
        jieba.add_word(_NEVER_IN_A_SENTENCE, _DEFAULT_SURPLUS, None)
        for tokens in _CLOSE_CALLS:
            if jieba.cut(tokens.replace("/", ""), False) != tokens.split("/"):
                raise DifferentTokensError(DifferentTokensError.__doc__)
        for word, frequency in user_words.items():
            jieba.add_word(word, frequency, None)
        jieba.add_word(_NEVER_IN_A_SENTENCE, surplus, None)

    def cut(self, texts: Sequence[str]) -> list[str]:
        """Return the tokens of all texts, with "\\n" after each text."""
        tokens: list[str] = []
        # Many texts at a time, since rjieba releases the interpreter's lock only during a call.
        for lines in _join(texts):
            tokens += self._cut_lines(lines)
        return tokens

    def _cut_lines(self, lines: str) -> list[str]:
        replaced = _REPLACED.findall(lines)
        if not replaced:
            return self._cut_plain(lines)
        tokens = self._cut_plain(_REPLACED.sub(_STAND_IN, lines))
        next_replaced = iter(replaced).__next__
        return [next_replaced() if token == _STAND_IN else token for token in tokens]

    def _cut_plain(self, lines: str) -> list[str]:
        return rejoined(self._cut_by_dictionary(lines, False), lines, self._tables, self._stays_single)

    def _stays_single(self, tokens: Sequence[str], first: int, end: int) -> bool:
        """Return whether a run of single ideographs is a dictionary word, which jieba keeps from the HMM.

        Letters, digits and signs beside the ideographs are part of the run; such a run is no dictionary word.
        """
        if not self.is_word("".join(tokens[first:end])):
            return False
        beside = [*tokens[max(first - 1, 0) : first], tokens[end]]
        return not any(map(_UNJOINED.fullmatch, beside))


def rejoined(
    tokens: Sequence[str],
    text: str,
    tables: Tables,
    stays_single: Callable[[Sequence[str], int, int], bool] = lambda *_: False,
) -> list[str]:
    """Return the tokens of jieba with HMM for those of jieba without it.

    Args:
        tokens: of the text, in order.
        text: all of them joined.
        tables: of the HMM.
        stays_single: returns whether the single ideographs tokens[first:end] are left as they are.
    """
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    found: list[str] = []
    done = 0
    for first, end, run_first, run_end in find_rejoined(code_points(text), lengths, *tables).tolist():
        is_han = run_first >= 0
        if is_han and stays_single(tokens, run_first, run_end):
            continue
        found += tokens[done:first]
        joined = "".join(tokens[first:end])
        found += (joined,) if is_han else filter(None, _HALF_WIDTH.split(joined))
        done = end
    return [*found, *tokens[done:]]


def _join(texts: Sequence[str]) -> Iterator[str]:
    """Yield strings of about `_CALL_CHARACTERS` characters, in which a newline ends each text."""
    begin = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= _CALL_CHARACTERS or end == len(texts):
            yield "\n".join(texts[begin:end]) + "\n"
            begin, size = end, 0
