"""The elements of SVG that plots of lines and of bars are made of."""

from html import escape


def opening(width: float, height: float, kind: str = "plot") -> str:
    """Return the start tag of a plot; its kind is a class of the page, which says how wide it is."""
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img" font-family="sans-serif" '
        'font-size="12">'
    )


def straight_line(x1: float, y1: float, x2: float, y2: float, kind: str | None = None, dash: str = "") -> str:
    """Return a straight line; its kind is a class of the page. Without one it has the colour around it."""
    colour = 'stroke="currentColor"' if kind is None else f'class="{kind}"'
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {colour}{dash}/>'


def text(x: float, y: float, words: str, anchor: str) -> str:
    """Return words at a place of a plot; they are escaped here."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
