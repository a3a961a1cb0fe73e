"""The skeleton of an HTML page that needs no other file, and its headings, paragraphs and tables."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from db_dedup.translation import tag, tr

_LIGHT: Final = "--paper:#fff;--ink:#222;--soft:#f4f4f4;--rule:#ccc;--grid:#ddd;--mark:#888"
_DARK: Final = "--paper:#1b1b1b;--ink:#e4e4e4;--soft:#292929;--rule:#555;--grid:#3a3a3a;--mark:#999"

COLOURS: Final = (
    ("#0b6fa4", "#4fb3e8"),
    ("#c1440e", "#ff8a5c"),
    ("#3a7d34", "#7fc97a"),
    ("#7b4ea3", "#c09cf0"),
    ("#8a6d00", "#d9b84a"),
    ("#444444", "#bdbdbd"),
    ("#d1127a", "#ff7dbb"),
    ("#00857c", "#4fd1c5"),
    ("#5b3a1e", "#c99c70"),
)
"""The colours of lines, on a light and on a dark page; line i has the class `c{i}`."""

_STYLE: Final = (
    # A phone would show the page as wide as a screen, and very small.
    "body{font-family:sans-serif;max-width:72em;margin:2em auto;padding:0 1em;background:var(--paper);"
    "color:var(--ink);overflow-wrap:anywhere}p,li{max-width:46em}"
    # A table that is wider than the page is scrolled by itself.
    ".wide{overflow-x:auto;margin:1em 0}table{border-collapse:collapse}"
    "td,th{padding:.3em .7em;border:1px solid var(--rule);text-align:right}td{white-space:nowrap}"
    "th{overflow-wrap:normal}.name{text-align:left}"
    "pre{background:var(--soft);padding:1em;overflow-x:auto}summary{cursor:pointer}"
    "figure{margin:1em 0;max-width:640px}svg{display:block}"
    "figure>svg{width:100%;font-size:12px}svg text{fill:currentColor}.bars{width:100%;max-width:560px}"
    ".grid{stroke:var(--grid)}.mark{stroke:var(--mark)}.ring{fill:var(--paper)}"
    ".legend{display:flex;flex-wrap:wrap;gap:.2em 1.2em;list-style:none;padding:0;margin:.4em 0}"
    ".legend li{display:flex;align-items:center;gap:.4em}"
    ".line,.dashes{flex:none;width:1.6em;border-top:3px solid}.dashes{border-top-style:dashed}"
    "blockquote{margin:1em 0;padding:0 1em;border-left:3px solid var(--rule)}"
    "@media(max-width:34em){h1{font-size:1.6em}h2{font-size:1.3em}figure>svg{font-size:17px}"
    # The numbers beside long names are seen without scrolling.
    "td,th{padding:.3em .35em}td.name{white-space:normal;min-width:7em}}"
    "@media print{body{max-width:none;margin:0}h2,h3{break-after:avoid}"
    "svg,tr,blockquote{break-inside:avoid}.wide{overflow:visible}}"
)


def page(title: str, parts: Iterable[str], language: str | None = None) -> str:
    """Return a whole page; the parts are HTML already, in this language or that of the process."""
    lines = [
        "<!DOCTYPE html>",
        f'<html lang="{language or tag()}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{_colours()}{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *parts,
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def heading(template: str, /, level: int = 2, name: str = "", **fields: object) -> str:
    """Return a heading in the reader's language; other pages can name it in an address."""
    known = f' id="{name}"' if name else ""
    return f"<h{level}{known}>{escape(tr(template, **fields))}</h{level}>"


def paragraph(template: str, /, **fields: object) -> str:
    """Return a paragraph in the reader's language."""
    return f"<p>{escape(tr(template, **fields))}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> str:
    """Return a table of texts, which are escaped here; without a header if it is empty.

    Args:
        header: the names of the columns in English.
        rows: their cells.
        names: so many of the first columns are names, not numbers.
    """
    head = _row("th", [tr(name) for name in header], names) if header else ""
    body = "".join(_row("td", row, names) for row in rows)
    return f'<div class="wide" tabindex="0"><table>{head}{body}</table></div>'


def _row(tag: str, cells: Sequence[str], names: int) -> str:
    opening = [f'<{tag} class="name">'] * names + [f"<{tag}>"] * (len(cells) - names)
    return "<tr>" + "".join(f"{o}{escape(c)}</{tag}>" for o, c in zip(opening, cells, strict=True)) + "</tr>"


def _colours() -> str:
    light, dark = (
        "".join(f".c{i}{{color:{pair[which]}}}" for i, pair in enumerate(COLOURS)) for which in (0, 1)
    )
    return (
        f":root{{color-scheme:light dark;{_LIGHT}}}{light}"
        f"@media(prefers-color-scheme:dark){{:root{{{_DARK}}}{dark}}}"
    )
