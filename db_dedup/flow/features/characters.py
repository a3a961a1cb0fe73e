"""The characters of short texts in their order, for the edit similarity.

A row is short if its text columns together have at most thirty characters; white space does not count, and
each value is one more symbol. Between two columns there is no mark: it would count as an equal character of
any two rows. The symbols of a row follow a set of 64 bits with a bit for each of its symbols: two rows whose
sets differ in many bits differ in at least as many symbols, which is seen without comparing the symbols.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import starts_of
from db_dedup.flow._code_points import code_points
from db_dedup.flow.features.counting import hash_values
from db_dedup.records.frames import CUT
from db_dedup.records.recipe import RecipeColumn

SHORT: Final = 30
"""The most symbols of a short row."""

MOST_EDITS: Final = 4
"""Two short rows with more edits are never duplicates by their edits: they would be different sentences."""

_LONGEST_TEXT: Final = 2 * SHORT
"""A longer normalised text has more than thirty characters: white space is collapsed to single spaces."""
_VALUE: Final = np.uint64(1 << 63)
"""Marks the symbol of a value: no code point has this bit."""
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_NEWLINE: Final = 10

Symbols = tuple[NDArray[np.int64], NDArray[np.uint64]]
"""(int64[m] the row of each symbol, uint64[m] symbols)"""


def short_characters(
    columns: Sequence[RecipeColumn], texts: Sequence[list[str]]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return what the section CHARACTERS of each row has.

    Args:
        columns: the weighted columns.
        texts: column by column the normalised texts of n rows.

    Returns:
        (int64[n + 1] the rows' slices, uint64[m]): for a short row the set of its symbols and its symbols;
        nothing for a longer row, and for a row without any symbol.
    """
    count = len(texts[0])
    text_columns = [own for own, column in zip(texts, columns, strict=True) if column.kind == "text"]
    lengths = np.zeros(count, np.int64)
    for own in text_columns:
        lengths += np.fromiter(map(len, own), np.int64, count)
    may_be_short = lengths <= _LONGEST_TEXT
    candidates = may_be_short.tolist()
    parts = [
        _symbols_of_texts([text if may else "" for text, may in zip(own, candidates, strict=True)])
        if column.kind == "text"
        else _symbols_of_values(column.name, own)
        for own, column in zip(texts, columns, strict=True)
    ]
    rows, symbols = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
    counts = np.bincount(rows, minlength=count)
    is_short = may_be_short & (counts > 0) & (counts <= SHORT)
    is_kept = is_short[rows]
    rows, symbols = rows[is_kept], symbols[is_kept]
    return with_sets(np.where(is_short, counts, 0), symbols[np.argsort(rows, kind="stable")])


def _symbols_of_texts(texts: list[str]) -> Symbols:
    """Return the code points of the texts, white space left out.

    `CUT`, where a frame was cut out, is a symbol: characters on its two sides do not follow each other.
    """
    points = code_points("\n".join(texts))
    rows = np.cumsum(points == _NEWLINE)
    different = np.unique(points)
    is_space = [chr(point).isspace() and chr(point) != CUT for point in different.tolist()]
    spaces = different[is_space]
    is_kept = ~np.isin(points, spaces)
    return rows[is_kept], points[is_kept].astype(np.uint64)


def _symbols_of_values(column: str, values: list[str]) -> Symbols:
    """Return one symbol for each value that is not empty."""
    hashes = hash_values(column, values)[::2]
    rows = np.flatnonzero(np.fromiter(map(bool, values), np.bool_, len(values)))
    return rows, hashes[rows] | _VALUE


def with_sets(
    counts: NDArray[np.int64], symbols: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Put the set of a row's symbols before them."""
    has_any = counts > 0
    firsts = np.cumsum(counts) - counts
    bits = np.uint64(1) << ((symbols * _SPREAD) >> np.uint64(58))
    starts = starts_of(counts + has_any)
    values = np.empty(starts[-1], np.uint64)
    is_symbol = np.ones(values.size, np.bool_)
    is_symbol[starts[:-1][has_any]] = False
    values[is_symbol] = symbols
    if symbols.size:
        values[~is_symbol] = np.bitwise_or.reduceat(bits, firsts[has_any])
    return starts, values
