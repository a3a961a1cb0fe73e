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

from db_dedup.flow.candidates._bands import BANDS
from db_dedup.flow.candidates.minhash import find_bands
from db_dedup.flow.candidates.passages import find_passages
from db_dedup.flow.candidates.short_texts import MOST_GRAMS, find_short_hashes

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
"""(starts, hashes) of the different character 3-grams of each row, all columns together; whether rows that
may be compared with short ones have other hashes for it -> hashes."""
OfCharacters = Callable[
    [NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64], float], RowHashes
]
"""(starts, characters) of short rows, (starts, hashes) of the 3-grams of all rows, threshold -> hashes."""


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
        of_grams: computes the hashes from the set of character 3-grams. Short rows get neither of the two.
        of_characters: computes the hashes of short rows, and of rows that may be compared with them; it is
            called if the recipe compares short rows by their edit similarity.
    """

    name: str
    one_is_enough: bool
    most_hashes: int
    of_texts: OfTexts | None = None
    of_grams: OfGrams | None = None
    of_characters: OfCharacters | None = None


_BANDS_BESIDE_GRAMS: Final = 20
"""The bands of a row that may be compared with short ones. Its eight 3-grams find its pairs with rows of its
own length more surely than the other four bands would; with all, it would need more hashes in common."""


def _minhash_bands(
    starts: NDArray[np.int64], hashes: NDArray[np.uint64], has_other_hashes: bool
) -> RowHashes:
    bands = find_bands(starts, hashes)
    sizes = np.diff(starts)
    counts = np.where(has_other_hashes & (sizes <= MOST_GRAMS), _BANDS_BESIDE_GRAMS, BANDS)
    is_kept = np.arange(BANDS) < counts[:, None]
    return RowHashes(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), bands[is_kept])


def _passage_hashes(streams: Sequence[NDArray[np.uint64]], row_count: int) -> RowHashes:
    return RowHashes(*find_passages(streams, row_count))


def _short_hashes(
    starts: NDArray[np.int64],
    characters: NDArray[np.uint64],
    gram_starts: NDArray[np.int64],
    grams: NDArray[np.uint64],
    threshold: float,
) -> RowHashes:
    return RowHashes(*find_short_hashes(starts, characters, gram_starts, grams, threshold))


def emptied(hashes: RowHashes, rows: NDArray[np.bool_]) -> RowHashes:
    """Return the same without the values of some rows."""
    if not rows.any():
        return hashes
    counts = np.diff(hashes.starts)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(rows, 0, counts))])
    return RowHashes(starts, hashes.values[np.repeat(~rows, counts)])


HASH_GENERATORS: Final = (
    HashGenerator("minhash bands", one_is_enough=True, most_hashes=BANDS, of_grams=_minhash_bands),
    HashGenerator("passage hashes", one_is_enough=False, most_hashes=0, of_texts=_passage_hashes),
    HashGenerator("grams of short texts", one_is_enough=False, most_hashes=0, of_characters=_short_hashes),
)
