"""The registry of candidate generators.

SimHash blocks find rows whose fingerprints are near (`blocks.py`). All others are hash generators: each
computes some hashes of every row, and two rows that share enough hashes are a candidate pair. The hashes of a
row are its sketch. The lowest bit of a hash says how many hashes must be shared: a single even hash is
enough, of the odd hashes a certain share is needed. So a new hash generator is a module and a line in
`HASH_GENERATORS`; the code that stores, looks up or joins sketches stays the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import starts_of
from db_dedup.flow.candidates.minhash import BANDS, find_bands
from db_dedup.flow.candidates.passages import find_passages
from db_dedup.flow.candidates.short_texts import (
    FEW_GRAMS,
    MOST_GRAMS,
    MOST_HASHES,
    MOST_OF_FEW,
    MOST_OF_LONGER,
    Prefixes,
    find_short_hashes,
    first_hashes,
)

SIMHASH: Final = "simhash"


class RowHashes(NamedTuple):
    """Hashes of n rows.

    Attributes:
        starts: int64[n + 1]; row i owns the slice starts[i]:starts[i + 1] of the values.
        values: uint64[m]; their lowest bits are replaced later.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.uint64]


OfTexts = Callable[[Sequence[NDArray[np.uint64]], int], RowHashes]
"""(for each text column its character 3-grams, row after row; number of rows) -> hashes."""
OfGrams = Callable[[NDArray[np.int64], NDArray[np.uint64], bool], RowHashes]
"""(starts, hashes) of the different character 3-grams of each row, all columns together; whether rows of few
3-grams have a prefix -> hashes."""
OfCharacters = Callable[
    [NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64], Prefixes], RowHashes
]
"""(starts, characters) of short rows, (starts, hashes) of the 3-grams of all rows, prefixes -> hashes."""


@dataclass(frozen=True)
class HashGenerator:
    """A candidate generator by hashes.

    Attributes:
        name: as `explain` shows it.
        one_is_enough: True if a single common hash makes a candidate pair, False if a share of them must be
            common.
        most_hashes: the most hashes of a row; 0 for no limit. If one is enough, there must be a limit, and
            each row should have so many: `sketches.least_in_common` subtracts the limit from the number of
            all hashes of a row, so a row with fewer needs fewer odd hashes in common.
        of_texts: computes the hashes from the character 3-grams in their order; None if another one does it.
        of_grams: computes the hashes from the set of character 3-grams. Rows with a prefix have only as many
            hashes of the two as there is room for (`room_beside_prefixes`).
        of_characters: computes the prefixes; it is called if the recipe compares short rows by their edit
            similarity.
    """

    name: str
    one_is_enough: bool
    most_hashes: int
    of_texts: OfTexts | None = None
    of_grams: OfGrams | None = None
    of_characters: OfCharacters | None = None


_BANDS_BESIDE_GRAMS: Final = 16
"""The bands of a row that has its first eight 3-grams as hashes. These find its pairs more surely than the
other eight bands would; with all, it would need more hashes in common."""


def _minhash_bands(starts: NDArray[np.int64], hashes: NDArray[np.uint64], has_prefixes: bool) -> RowHashes:
    sizes = np.diff(starts)
    counts = np.full(sizes.size, BANDS)
    if has_prefixes:
        counts[sizes <= MOST_OF_LONGER] = _BANDS_BESIDE_GRAMS
        counts[sizes <= MOST_GRAMS] = 0
        starts, hashes = _emptied(starts, hashes, counts == 0)
    bands = find_bands(starts, hashes)
    is_kept = np.arange(BANDS) < counts[:, None]
    return RowHashes(starts_of(counts), bands[is_kept])


def _emptied(
    starts: NDArray[np.int64], values: NDArray[np.uint64], rows: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (starts, values) without the values of some rows."""
    counts = np.diff(starts)
    new_starts = starts_of(np.where(rows, 0, counts))
    return new_starts, values[np.repeat(~rows, counts)]


def _passage_hashes(streams: Sequence[NDArray[np.uint64]], row_count: int) -> RowHashes:
    return RowHashes(*find_passages(streams, row_count))


def _short_hashes(
    starts: NDArray[np.int64],
    characters: NDArray[np.uint64],
    gram_starts: NDArray[np.int64],
    grams: NDArray[np.uint64],
    prefixes: Prefixes,
) -> RowHashes:
    return RowHashes(*find_short_hashes(starts, characters, gram_starts, grams, prefixes))


def room_beside_prefixes(
    is_short: NDArray[np.bool_], sizes: NDArray[np.int64], prefixes: RowHashes
) -> NDArray[np.int64]:
    """Return int64[n]: how many other hashes each row may have.

    With at most 36 hashes one in common is enough, so that a row shares enough with every row that shares a
    gram of its prefix.

    Args:
        is_short: bool[n].
        sizes: int64[n], how many 3-grams each row has.
        prefixes: of the rows.
    """
    most = np.where(sizes <= FEW_GRAMS, MOST_OF_FEW, MOST_HASHES) - np.diff(prefixes.starts)
    room = np.where(sizes <= MOST_GRAMS, np.maximum(most, 0), np.iinfo(np.int64).max)
    room[sizes == 0] = 0
    return np.where(is_short, 0, room)


def reduced(hashes: RowHashes, room: NDArray[np.int64]) -> RowHashes:
    """Return at most so many hashes of each row (`short_texts.first_hashes`)."""
    return hashes if np.all(np.diff(hashes.starts) <= room) else RowHashes(*first_hashes(*hashes, room))


HASH_GENERATORS: Final = (
    HashGenerator("minhash bands", one_is_enough=True, most_hashes=BANDS, of_grams=_minhash_bands),
    HashGenerator("passage hashes", one_is_enough=False, most_hashes=0, of_texts=_passage_hashes),
    HashGenerator("grams of short texts", one_is_enough=False, most_hashes=0, of_characters=_short_hashes),
)
