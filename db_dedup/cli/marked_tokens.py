"""The tokens of one text, in the colours or brackets of `side_by_side`."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.text import Text

from db_dedup.cli.side_by_side import one_line
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
        append_differing: appends neighbouring tokens that the other row lacks.
        colour: mark them by colour, else by brackets.
        full: do not shorten long stretches that the other row has, too.
    """
    text = Text()
    for differs, stretch in groupby(_seen(tokens), key=lambda token: token.mark == "differs"):
        if differs:
            append_differing(text, " ".join(token.text for token in stretch), colour)
            text.append(" ")
            continue
        for token in stretch if full else _shortened(list(stretch)):
            text.append(f"{token.text} ", "dim" if token.mark == "ignored" else None)
    text.rstrip()
    return text


def _seen(tokens: Sequence[MarkedToken]) -> Iterator[MarkedToken]:
    """The tokens that are more than white space, without what would move the cursor."""
    for token in tokens:
        if shown := one_line(token.text):
            yield MarkedToken(shown, token.mark)


def _shortened(alike: list[MarkedToken]) -> list[MarkedToken]:
    if len(alike) <= LONGEST_ALIKE:
        return alike
    left_out = MarkedToken(f"… {len(alike) - 2 * _KEPT_AT_END:,} tokens …", "ignored")
    return [*alike[:_KEPT_AT_END], left_out, *alike[-_KEPT_AT_END:]]
