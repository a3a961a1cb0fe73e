"""A small log-log line plot as SVG."""

from collections.abc import Iterator, Mapping
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 20, 50
COLOURS = ("#0b6fa4", "#c1440e", "#3a7d34", "#7b4ea3", "#8a6d00", "#444444")

_OPENING = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    'font-family="sans-serif" font-size="13" fill="#333333">'
)

Lines = Mapping[str, Mapping[int, float]]
"""Name of a line -> x -> y, all above 0."""


def log_log_svg(lines: Lines, title: str, x_title: str, y_title: str) -> str:
    """The plot: decades as grid, each line named at its right end, those of an odd place dashed."""
    plot = _Plot(lines)
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


class _Plot:
    """Where values stand on the page."""

    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._x = _decades([x for line in lines.values() for x in line])
        self._y = _decades([y for line in lines.values() for y in line.values()])

    def x(self, value: float) -> float:
        return LEFT + self.width * (log10(value) - self._x[0]) / (self._x[-1] - self._x[0])

    def y(self, value: float) -> float:
        return TOP + self.height * (1 - (log10(value) - self._y[0]) / (self._y[-1] - self._y[0]))

    def grid(self) -> Iterator[str]:
        for power in self._x:
            x = self.x(10.0**power)
            yield _line(x, TOP, x, TOP + self.height)
            yield _text(x, TOP + self.height + 18, f"{10**power:,}", "middle")
        for power in self._y:
            y = self.y(10.0**power)
            yield _line(LEFT, y, LEFT + self.width, y)
            yield _text(LEFT - 8, y + 4, f"{10.0**power:,.{max(0, -power)}f}", "end")

    def lines(self) -> Iterator[str]:
        below = self.names_at()
        for i, (name, line) in enumerate(self._lines.items()):
            colour = COLOURS[i % len(COLOURS)]
            points = [(self.x(x), self.y(y)) for x, y in sorted(line.items())]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            dash = ' stroke-dasharray="6 4"' if i % 2 else ""
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points)
            yield _text(points[-1][0] + 10, below[name] + 4, name, "start", colour)

    def names_at(self) -> dict[str, float]:
        """The height of each name: that of its line's end, but above the axis and apart from other names."""
        ends = sorted((self.y(line[max(line)]), name) for name, line in self._lines.items())
        at: dict[str, float] = {}
        lowest = 0.0
        for y, name in ends:
            lowest = at[name] = max(y, lowest + 16)
        highest = TOP + self.height - 4.0
        for _, name in reversed(ends):
            at[name] = min(at[name], highest)
            highest = at[name] - 16
        return at


def _decades(values: list[float] | list[int]) -> range:
    """The powers of ten that take in all values, two at least."""
    first = floor(log10(min(values)))
    return range(first, max(ceil(log10(max(values))), first + 1) + 1)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
