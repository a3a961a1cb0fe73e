"""The tokens of one text, in the colours or brackets of `side_by_side`."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.text import Text

from db_dedup.amounts import counted
from db_dedup.cli.side_by_side import MOST_DIFFERENCES, one_line, shortened_difference
from db_dedup.records import MarkedToken

AppendDiffering = Callable[[Text, str, bool], None]

LONGEST_ALIKE: Final = 60
"""Tokens: a longer stretch without any that differs is shortened."""
_KEPT_AT_END: Final = 20


def marked_tokens(
    tokens: Sequence[MarkedToken], append_differing: AppendDiffering, colour: bool, full: bool
) -> Text:
    """Tokens with spaces between them.

    Args:
        tokens: of one text.
        append_differing: appends neighbouring tokens that the other row does not have.
        colour: mark them by colour, else by brackets.
        full: show all tokens, else the first differences and a little of what is around them.
    """
    text = Text()
    shown = _shown(tokens)
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


def _shown(tokens: Sequence[MarkedToken]) -> Iterator[MarkedToken]:
    """The tokens that are more than white space, without what would move the cursor."""
    for token in tokens:
        if token.text.isalnum():
            yield token
        elif shown := one_line(token.text):
            yield MarkedToken(shown, token.mark)


def _shortened(alike: list[MarkedToken]) -> list[MarkedToken]:
    if len(alike) > LONGEST_ALIKE:
        left_out = MarkedToken(_left_out(len(alike) - 2 * _KEPT_AT_END), "ignored")
        alike = [*alike[:_KEPT_AT_END], left_out, *alike[-_KEPT_AT_END:]]
    return [MarkedToken(shortened_difference(token.text), token.mark) for token in alike]


def _left_out(tokens: int) -> str:
    return f"… {counted(tokens, 'token')} …"
