"""Small line plots as SVG, each axis even or by decades."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 230, 20, 50
COLOURS = ("#0b6fa4", "#c1440e", "#3a7d34", "#7b4ea3", "#8a6d00", "#444444")

_OPENING = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    'font-family="sans-serif" font-size="13" fill="#333333">'
)

Lines = Mapping[str, Mapping[int, float]] | Mapping[str, Mapping[float, float]]
"""Name of a line -> x -> y; above 0 on an axis by decades, 0 or more on an even one."""

_EVEN_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_STEPS: Final = 8


def log_log_svg(lines: Lines, title: str, x_title: str, y_title: str) -> str:
    """The plot with both axes by decades."""
    return line_svg(lines, title, x_title, y_title, is_x_log=True, is_y_log=True)


def line_svg(
    lines: Lines, title: str, x_title: str, y_title: str, *, is_x_log: bool = False, is_y_log: bool = False
) -> str:
    """The plot: a grid, each line named at its right end, those of an odd place dashed.

    Args:
        lines: at least one.
        title: for readers that cannot see the plot.
        x_title: of the axis from left to right.
        y_title: of the other axis.
        is_x_log: by decades; else the axis is even and begins at 0.
        is_y_log: the same.
    """
    points = {name: sorted((float(x), y) for x, y in line.items()) for name, line in lines.items()}
    xs = [x for line in points.values() for x, _ in line]
    ys = [y for line in points.values() for _, y in line]
    plot = _Plot(points, (_Decades if is_x_log else _Even)(xs), (_Decades if is_y_log else _Even)(ys))
    parts = [
        _OPENING,
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *plot.grid(),
        _text(LEFT + plot.width / 2, HEIGHT - 12, x_title, "middle"),
        f'<g transform="rotate(-90)">{_text(-TOP - plot.height / 2, 18, y_title, "middle")}</g>',
        *plot.lines(),
        "</svg>\n",
    ]
    return "\n".join(parts)


class _Decades:
    """An axis from a power of ten to another one."""

    def __init__(self, values: Sequence[float]) -> None:
        first = floor(log10(min(values)))
        self._powers = range(first, max(ceil(log10(max(values))), first + 1) + 1)

    def place(self, value: float) -> float:
        """From 0 at the first power to 1 at the last one."""
        return (log10(value) - self._powers[0]) / (self._powers[-1] - self._powers[0])

    def marks(self) -> Iterator[tuple[float, str]]:
        for power in self._powers:
            yield 10.0**power, f"{10.0**power:,.{max(0, -power)}f}"


class _Even:
    """An axis from 0 to the first multiple of a round step that no value exceeds."""

    def __init__(self, values: Sequence[float]) -> None:
        most = max(*values, 1e-9)
        unit = 10.0 ** floor(log10(most / _MOST_STEPS))
        # A little room, so that 0.3 is no more than three times 0.1.
        self._step = next(n * unit for n in _EVEN_STEPS if most / (n * unit) <= _MOST_STEPS + 1e-9)
        self._count = ceil(most / self._step - 1e-9)

    def place(self, value: float) -> float:
        """From 0 at 0 to 1 at the end."""
        return value / (self._step * self._count)

    def marks(self) -> Iterator[tuple[float, str]]:
        for number in range(self._count + 1):
            yield number * self._step, f"{number * self._step:g}"


class _Plot:
    """Where values stand on the page."""

    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def __init__(
        self, lines: dict[str, list[tuple[float, float]]], x: _Decades | _Even, y: _Decades | _Even
    ) -> None:
        self._lines = lines
        self._x = x
        self._y = y

    def x(self, value: float) -> float:
        return LEFT + self.width * self._x.place(value)

    def y(self, value: float) -> float:
        return TOP + self.height * (1 - self._y.place(value))

    def grid(self) -> Iterator[str]:
        for value, text in self._x.marks():
            x = self.x(value)
            yield _line(x, TOP, x, TOP + self.height)
            yield _text(x, TOP + self.height + 18, text, "middle")
        for value, text in self._y.marks():
            y = self.y(value)
            yield _line(LEFT, y, LEFT + self.width, y)
            yield _text(LEFT - 8, y + 4, text, "end")

    def lines(self) -> Iterator[str]:
        below = self.names_at()
        for i, (name, line) in enumerate(self._lines.items()):
            colour = COLOURS[i % len(COLOURS)]
            points = [(self.x(x), self.y(y)) for x, y in line]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            dash = ' stroke-dasharray="6 4"' if i % 2 else ""
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points)
            yield _text(points[-1][0] + 10, below[name] + 4, name, "start", colour)

    def names_at(self) -> dict[str, float]:
        """The height of each name: that of its line's end, but above the axis and apart from other names."""
        ends = sorted((self.y(line[-1][1]), name) for name, line in self._lines.items())
        at: dict[str, float] = {}
        lowest = 0.0
        for y, name in ends:
            lowest = at[name] = max(y, lowest + 16)
        highest = TOP + self.height - 4.0
        for _, name in reversed(ends):
            at[name] = min(at[name], highest)
            highest = at[name] - 16
        return at


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
