"""The frame of a page of HTML that needs no other file, and its tables."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_STYLE: Final = (
    "body{font-family:sans-serif;max-width:52em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.3em .7em;border:1px solid #ccc;text-align:right}"
    "td:first-child,th:first-child{text-align:left}svg{width:100%;max-width:640px;display:block}"
    "pre{background:#f4f4f4;padding:1em;overflow-x:auto}"
    ".wide{overflow-x:auto}blockquote{margin:1em 0;padding:0 1em;border-left:3px solid #ccc}"
    "@media (max-width:40em){body{margin:1em auto;padding:0 .6em}td,th{padding:.25em .45em}}"
    "@media print{body{max-width:none;margin:0}h2,h3{break-after:avoid}"
    "svg,tr,blockquote{break-inside:avoid}.wide{overflow:visible}}"
)


def page(title: str, parts: Iterable[str]) -> str:
    """Return a whole page; the parts are HTML already."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *parts,
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, which are escaped here; without a header if it is empty."""
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    head = f"<tr>{cells}</tr>" if cells else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table>{head}{body}</table></div>'
