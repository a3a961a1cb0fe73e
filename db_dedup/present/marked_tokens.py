"""The tokens of one text, in the colours or brackets of `side_by_side`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import Final

from rich.text import Text

from db_dedup.plurals import counted
from db_dedup.present.alignment import units
from db_dedup.present.side_by_side import MOST_DIFFERENCES, shortened_difference
from db_dedup.present.visible import one_line
from db_dedup.records import MarkedToken
from db_dedup.translation import tr

AppendDiffering = Callable[[Text, str, bool], None]

_LONGEST_ALIKE: Final = 60
"""Tokens: a longer stretch without any that differs is shortened."""
_KEPT_AT_END: Final = 20


def marked_tokens(
    tokens: Sequence[MarkedToken],
    own_text: str,
    other_text: str,
    append_differing: AppendDiffering,
    colour: bool,
    full: bool,
) -> Text:
    """Return tokens with spaces between them, those that differ marked.

    Args:
        tokens: of one text.
        own_text: this text.
        other_text: the text that it is compared with.
        append_differing: appends neighbouring tokens that the other row does not have.
        colour: mark them by colour, else by brackets.
        full: show all tokens, else the first differences and a little of what is around them.
    """
    text = Text()
    shown = _shown(by_word(tokens, own_text, other_text))
    differences = 0
    for differs, stretch in groupby(shown, key=lambda token: token.mark == "differs"):
        if differs and differences == MOST_DIFFERENCES and not full:
            rest = sum(1 for _ in stretch) + sum(1 for _ in shown)
            text.append(_left_out(rest), "dim")
            break
        if differs:
            differing = " ".join(token.text for token in stretch)
            append_differing(text, differing if full else shortened_difference(differing), colour)
            text.append(" ")
            differences += 1
            continue
        for token in stretch if full else _shortened(list(stretch)):
            text.append(f"{token.text} ", None if token.mark == "shared" else "dim")
    text.rstrip()
    return text


def by_word(tokens: Iterable[MarkedToken], own_text: str, other_text: str) -> Iterator[MarkedToken]:
    """Yield the tokens, those of one word of a spaced script joined and marked as a word.

    jieba cuts words of Cyrillic, Greek or Hangul, and Latin letters with accents, into single letters, which
    nearly every other text has too. The tokens of other segmenters may have no spaces between them: what is
    no word of the text when it is joined stays as it is.

    Args:
        tokens: of one text.
        own_text: this text.
        other_text: the text that it is compared with.
    """
    own, others = _Words(own_text), _Words(other_text)
    for is_left_out, stretch in groupby(tokens, key=lambda token: token.mark == "left_out"):
        found = list(stretch)
        yield from found if is_left_out else _joined(found, own, others)


class _Words:
    """The words of a text, which is cut into them only when one is looked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(self._text[begin:end] for begin, end in units(self._text))

    def __contains__(self, word: str) -> bool:
        """Whether the text has the whole word."""
        return word in self._words


def _joined(tokens: list[MarkedToken], own: _Words, others: _Words) -> Iterator[MarkedToken]:
    text = "".join(token.text for token in tokens)
    inside = {place for begin, end in units(text) for place in range(begin + 1, end)}
    ends = accumulate(len(token.text) for token in tokens)
    cuts = [i for i, end in enumerate(ends, 1) if end not in inside]
    for first, last in pairwise([0, *cuts]):
        word = "".join(token.text for token in tokens[first:last])
        if last == first + 1 or word not in own:
            yield from tokens[first:last]
        else:
            yield MarkedToken(word, "shared" if word in others else "differs")


def _shown(tokens: Iterable[MarkedToken]) -> Iterator[MarkedToken]:
    """Yield the tokens that are more than white space, without what would move the cursor."""
    for token in tokens:
        if token.text.isalnum():
            yield token
        elif shown := one_line(token.text):
            yield MarkedToken(shown, token.mark)


def _shortened(alike: list[MarkedToken]) -> list[MarkedToken]:
    if len(alike) > _LONGEST_ALIKE:
        left_out = MarkedToken(_left_out(len(alike) - 2 * _KEPT_AT_END), "ignored")
        alike = [*alike[:_KEPT_AT_END], left_out, *alike[-_KEPT_AT_END:]]
    return [MarkedToken(shortened_difference(token.text), token.mark) for token in alike]


def _left_out(tokens: int) -> str:
    return f"… {tr(counted(tokens, 'token'))} …"
