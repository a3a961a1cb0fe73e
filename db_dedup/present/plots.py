"""Small line plots as SVG inside HTML, with room for intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 640
HEIGHT: Final = 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 150, 15, 45
_COLOURS: Final = (
    *("#0b6fa4", "#c1440e", "#3a7d34", "#7b4ea3", "#8a6d00"),
    *("#444444", "#d1127a", "#00857c", "#5b3a1e"),
)


def opening(width: float, height: float, widest: int | None = None) -> str:
    """Return the start tag of a plot, which is as wide as the page, or at most `widest` pixels."""
    limit = "" if widest is None else f' style="max-width:{widest}px"'
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" font-family="sans-serif" font-size="12" '
        f'fill="#333333"{limit}>'
    )


_OPENING: Final = opening(WIDTH, HEIGHT)


@dataclass(frozen=True)
class Point:
    """A value, and the ends of its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """Points in the order in which they are joined; `is_joined` False: rings alone, seen on top of lines."""

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
    """An axis for shares, up to 1."""
    ticks = [i / 10 for i in range(11) if i / 10 >= start - 1e-9]
    return Axis(title, start, 1.0, [(tick, f"{tick:.1f}") for tick in ticks])


def svg(title: str, x: Axis, y: Axis, lines: Sequence[Line], mark: float | None = None) -> str:
    """The plot: each line named at the right; `mark` is a place on the x axis to point out."""
    frame = _Frame(x, y)
    bottom = frame.y(y.start)
    parts = [
        _OPENING,
        f"<title>{escape(title)}</title>",
        *frame.grid(),
        text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 8, x.title, "middle"),
        f'<g transform="rotate(-90)">{text(-(_TOP + bottom) / 2, 13, y.title, "middle")}</g>',
    ]
    if mark is not None:
        at = frame.x(mark)
        parts.append(rule(at, _TOP, at, bottom, "#888888", ' stroke-dasharray="3 3"'))
    for i, line in enumerate(lines):
        parts += frame.line(line, i)
    return "\n".join([*parts, "</svg>"])


class _Frame:
    """Which values an axis shows."""

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
            yield rule(self.x(value), top, self.x(value), bottom)
            yield text(self.x(value), bottom + 16, label, "middle")
        for value, label in self._y.ticks:
            yield rule(left, self.y(value), right, self.y(value))
            yield text(left - 6, self.y(value) + 4, label, "end")

    def line(self, line: Line, i: int) -> Iterator[str]:
        colour = _COLOURS[i % len(_COLOURS)]
        places = [(self.x(p.x), self.y(p.y)) for p in line.points]
        if line.is_joined and len(places) > 1:
            dash = ' stroke-dasharray="6 4"' if i % 2 else ""
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
        for point, (x, y) in zip(line.points, places, strict=True):
            if point.low is not None and point.high is not None:
                yield rule(x, self.y(point.low), x, self.y(point.high), colour)
            look = f'r="3" fill="{colour}"' if line.is_joined else f'r="5" fill="none" stroke="{colour}"'
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" {look} stroke-width="2"/>'
        yield text(WIDTH - _RIGHT + 12, _TOP + 14 + 18 * i, line.name, "start", colour)


def rule(x1: float, y1: float, x2: float, y2: float, colour: str = "#dddddd", dash: str = "") -> str:
    """Return a straight line of a plot."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dash}/>'


def text(x: float, y: float, words: str, anchor: str, colour: str = "#333333") -> str:
    """Return words at a place of a plot; they are escaped here."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
