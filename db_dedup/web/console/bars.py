"""Plots of bars as SVG inside HTML, without any style that a strict Content-Security-Policy refuses."""

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 420
_LINE: Final = 26
_LABEL: Final = 130
_VALUE: Final = 105
_WIDE: Final = 2
"""A Chinese character is as wide as two Latin ones."""
_LONGEST: Final = 16


class Bar(NamedTuple):
    """One bar: its label, its length, and the words at its end."""

    label: str
    value: float
    shown: str


def bars(title: str, found: Sequence[Bar], longest: float | None = None) -> str:
    """Return horizontal bars below each other.

    Args:
        title: of the plot, for screen readers; the page shows it, too.
        found: the bars, from the top.
        longest: the value of a bar of full length; if left out, the largest.
    """
    most = longest or max((bar.value for bar in found), default=0) or 1
    room = WIDTH - _LABEL - _VALUE
    height = _LINE * max(1, len(found))
    opening = (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        'font-family="sans-serif" font-size="14" fill="#1b1f24">'
    )
    parts = [opening]
    for i, bar in enumerate(found):
        top = i * _LINE
        width = room * min(1.0, bar.value / most)
        middle = top + 17
        parts += [
            f'<text x="{_LABEL - 8}" y="{middle}" text-anchor="end">{escape(_short(bar.label))}</text>',
            f'<rect x="{_LABEL}" y="{top + 4}" width="{max(width, 1):.1f}" height="18" fill="#0b6fa4"/>',
            f'<text x="{_LABEL + width + 6:.1f}" y="{middle}">{escape(bar.shown)}</text>',
        ]
    return "".join([*parts, "</svg>"])


def _short(label: str) -> str:
    """Return a label that fits beside its bar."""
    width, kept = 0, ""
    for character in label:
        width += _WIDE if ord(character) > 0x2E7F else 1
        if width > _LONGEST:
            return f"{kept}…"
        kept += character
    return kept
