"""The frame of a page of HTML that needs no other file, and its tables."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_STYLE: Final = (
    "body{font-family:sans-serif;max-width:52em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.3em .7em;border:1px solid #ccc;text-align:right}"
    "td:first-child,th:first-child{text-align:left}svg{width:100%;max-width:640px;display:block}"
    "pre{background:#f4f4f4;padding:1em}"
)


def page(title: str, parts: Iterable[str]) -> str:
    """Return a whole page; the parts are HTML already."""
    lines = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *parts,
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, which are escaped here."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
