"""Small line plots as SVG inside HTML, with room for intervals.

Their colours and the size of their letters come from the page (`html_page`), which has others for a dark
screen and for a small one. The names of the lines are HTML below the plot, and do not shrink with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import floor
from typing import Final

from db_dedup.present.html_page import COLOURS
from db_dedup.present.svg import opening, straight_line, text

WIDTH: Final = 520
HEIGHT: Final = 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 55, 20, 15, 50
_DASHED: Final = ' stroke-dasharray="6 4"'

_SHAPES: Final = (
    ("○", "m-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z"),
    ("□", "m-4.5,-4.5h9v9h-9z"),
    ("◇", "m0,-6.5l6.5,6.5l-6.5,6.5l-6.5,-6.5z"),
    ("△", "m0,-6l6,10.5h-12z"),
)
"""What points are drawn as that no line joins, in turn: as a letter, and as a path around its centre."""


@dataclass(frozen=True)
class Point:
    """A value, and the ends of its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """Points in the order in which they are joined; `is_joined` False: shapes alone, seen on top of lines."""

    name: str
    points: Sequence[Point]
    is_joined: bool = True


@dataclass(frozen=True)
class Axis:
    """What an axis shows: its title, where it begins and ends, and its ticks with their labels."""

    title: str
    start: float
    end: float
    ticks: Sequence[tuple[float, str]]


def share_axis(title: str, start: float = 0.0) -> Axis:
    """Return an axis for shares, up to 1."""
    ticks = [i / 10 for i in range(11) if i / 10 >= start - 1e-9]
    return Axis(title, start, 1.0, [(tick, f"{tick:.1f}") for tick in ticks])


def tenth_below(shares: Iterable[float]) -> float:
    """Return where an axis of these shares may begin, at 0.9 at the latest."""
    return min(0.9, floor(10 * min(shares, default=0.0) + 1e-9) / 10)


def figure(title: str, x: Axis, y: Axis, lines: Sequence[Line], mark: float | None = None) -> str:
    """Return the plot, and the names of its lines below it; `mark` is a place on the x axis to point out."""
    names = "".join(f"<li>{_swatch(line, i)}{escape(line.name)}</li>" for i, line in enumerate(lines))
    return "\n".join(
        ["<figure>", _svg(title, x, y, lines, mark), f'<ul class="legend">{names}</ul>', "</figure>"]
    )


def _svg(title: str, x: Axis, y: Axis, lines: Sequence[Line], mark: float | None) -> str:
    places = _Coordinates(x, y)
    bottom = places.y(y.start)
    parts = [
        opening(WIDTH, HEIGHT),
        f"<title>{escape(title)}</title>",
        *places.grid(),
        text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 8, x.title, "middle"),
        f'<g transform="rotate(-90)">{text(-(_TOP + bottom) / 2, 15, y.title, "middle")}</g>',
    ]
    if mark is not None:
        at = places.x(mark)
        parts.append(straight_line(at, _TOP, at, bottom, "mark", ' stroke-dasharray="3 3"'))
    for i, line in enumerate(lines):
        parts += places.line(line, i)
    return "\n".join([*parts, "</svg>"])


class _Coordinates:
    """Where values are in the plot, in its units: x from the left, y from the top."""

    def __init__(self, x: Axis, y: Axis) -> None:
        self._x, self._y = x, y

    def x(self, value: float) -> float:
        share = (value - self._x.start) / (self._x.end - self._x.start)
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, share))

    def y(self, value: float) -> float:
        share = (value - self._y.start) / (self._y.end - self._y.start)
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(1.0, max(0.0, share))

    def grid(self) -> Iterator[str]:
        left, right = self.x(self._x.start), self.x(self._x.end)
        top, bottom = self.y(self._y.end), self.y(self._y.start)
        for value, label in self._x.ticks:
            yield straight_line(self.x(value), top, self.x(value), bottom, "grid")
            yield text(self.x(value), bottom + 18, label, "middle")
        for value, label in self._y.ticks:
            yield straight_line(left, self.y(value), right, self.y(value), "grid")
            yield text(left - 6, self.y(value) + 4, label, "end")

    def line(self, line: Line, i: int) -> Iterator[str]:
        places = [(self.x(p.x), self.y(p.y)) for p in line.points]
        yield f'<g class="{_colour(i)}">'
        if line.is_joined and len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="2"{_dash(i)}/>'
        for point, (x, y) in zip(line.points, places, strict=True):
            if point.low is not None and point.high is not None:
                yield straight_line(x, self.y(point.low), x, self.y(point.high))
            yield _point(line, i, x, y)
        yield "</g>"


def _swatch(line: Line, i: int) -> str:
    """Return what a line looks like, for its name."""
    if line.is_joined:
        return f'<i class="{_colour(i)} {"dashes" if _dash(i) else "line"}"></i>'
    return f'<b class="{_colour(i)}">{_shape(i)[0]}</b>'


def _point(line: Line, i: int, x: float, y: float) -> str:
    if line.is_joined:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>'
    return f'<path class="ring" d="M{x:.1f},{y:.1f}{_shape(i)[1]}" stroke="currentColor" stroke-width="2"/>'


def _shape(i: int) -> tuple[str, str]:
    return _SHAPES[i % len(_SHAPES)]


def _colour(i: int) -> str:
    return f"c{i % len(COLOURS)}"


def _dash(i: int) -> str:
    return _DASHED if i % 2 else ""
