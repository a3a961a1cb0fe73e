"""Bars as SVG inside HTML, wide enough to be read on a phone; a part of each may be marked.

Widths and colours come from the page's style sheet, by classes (`bars`, `c0`, `c1`): a strict
Content-Security-Policy refuses styles in the picture.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from db_dedup.present.svg import opening, straight_line, text

WIDTH: Final = 400
_COLOUR, _MARKED = "c0", "c1"
_ROW: Final = 24
_TICK: Final = 30
_LABEL, _VALUE = 108, 104
_LONGEST: Final = 16
"""Latin characters of a label."""
_WIDE: Final = 2
"""A Chinese character is as wide as two Latin ones."""
_FIRST_WIDE: Final = 0x2E80
_HEIGHT, _LEFT, _TOP, _BOTTOM = 190, 50, 12, 42
_MOST_TICKS: Final = 5


class Bar(NamedTuple):
    """A bar: its name, its amount, what is written beside it, and how much of it is marked."""

    label: str
    amount: float
    words: str = ""
    marked: float = 0


def rows_of_bars(title: str, bars: Sequence[Bar], longest: float | None = None) -> str:
    """Return a plot with a row for each bar: its label, the bar, its amount or its words.

    Args:
        title: of the plot, for screen readers.
        bars: from the top.
        longest: the amount of a bar of full length; if left out, the largest one.
    """
    most = longest or max((bar.amount for bar in bars), default=0) or 1
    room = WIDTH - _LABEL - _VALUE
    parts = [*_opening(title, _ROW * len(bars) + 6)]
    for i, bar in enumerate(bars):
        top = i * _ROW + 4
        width, marked = (room * amount / most for amount in (bar.amount, bar.marked))
        parts += [
            text(_LABEL - 8, top + 13, _short(bar.label), "end"),
            *_rectangles(_LABEL, top, width, _ROW - 7),
            *_rectangles(_LABEL, top, marked, _ROW - 7, _MARKED),
            text(_LABEL + width + 6, top + 13, bar.words or f"{bar.amount:,}", "start"),
        ]
    return "\n".join([*parts, "</svg>"])


def columns_of_bars(title: str, axis: str, bars: Sequence[Bar]) -> str:
    """Return a plot with a column for each bar, side by side over an axis with this title."""
    most = max((bar.amount for bar in bars), default=0) or 1
    bottom, width = _HEIGHT - _BOTTOM, (WIDTH - _LEFT) / max(len(bars), 1)
    parts = [*_opening(title, _HEIGHT)]
    for share in (0.0, 0.5, 1.0):
        y = bottom - (bottom - _TOP) * share
        parts += [straight_line(_LEFT, y, WIDTH, y, "grid")]
        if share * most == int(share * most):
            parts += [text(_LEFT - 6, y + 4, f"{int(share * most):,}", "end")]
    every = max(1, -(-len(bars) // _MOST_TICKS))
    for i, bar in enumerate(bars):
        left = _LEFT + i * width
        for amount, colour in ((bar.amount, _COLOUR), (bar.marked, _MARKED)):
            height = (bottom - _TOP) * amount / most
            parts += _rectangles(left + width * 0.1, bottom - height, width * 0.8, height, colour)
        if i % every == 0:
            centre = left + width / 2
            is_cut = centre + _TICK > WIDTH and len(bars) > _MOST_TICKS
            at, anchor = (WIDTH, "end") if is_cut else (centre, "middle")
            parts += [text(at, bottom + 16, bar.label, anchor)]
    parts += [text((_LEFT + WIDTH) / 2, _HEIGHT - 6, axis, "middle")]
    return "\n".join([*parts, "</svg>"])


def legend(plain: str, marked: str) -> str:
    """Return a paragraph that says what the two colours of the bars mean."""
    spans = (
        f'<span class="{colour}">&#9632;</span> {escape(words)}'
        for colour, words in ((_COLOUR, plain), (_MARKED, marked))
    )
    return f"<p>{' &nbsp; '.join(spans)}</p>"


def _opening(title: str, height: float) -> Iterator[str]:
    yield opening(WIDTH, height, "bars")
    yield f"<title>{escape(title)}</title>"


def _short(label: str) -> str:
    """Return a label that fits beside its bar."""
    width, kept = 0, ""
    for character in label:
        width += _WIDE if ord(character) >= _FIRST_WIDE else 1
        if width > _LONGEST:
            return f"{kept}…"
        kept += character
    return kept


def _rectangles(left: float, top: float, width: float, height: float, colour: str = _COLOUR) -> Iterator[str]:
    if width > 0 and height > 0:
        yield (
            f'<rect class="{colour}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
            'fill="currentColor"/>'
        )
