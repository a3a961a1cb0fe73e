"""The edit distance of two short rows: how many symbols are inserted, deleted or replaced.

The distance is Levenshtein's, computed for all symbols of one row at once in the bits of one number (Myers
1999, in the form of Hyyrö 2003). The rows are sections CHARACTERS of `features.details`.
"""

import numpy as np

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import full
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.features.characters import MOST_EDITS
from db_dedup.flow.features.details import CHARACTERS, SECTIONS


@inner
def is_short(starts, row):
    """Return whether a row is short.

    Args:
        starts: int64[3n + 1], the starts of the details.
        row: its number among the details.
    """
    place = row * SECTIONS + CHARACTERS
    return starts[place] < starts[place + 1]


@inner
def edit_similarity(starts, values, a, b, threshold):
    """Return 1 - distance / length of the longer of two short rows; 0 if there are more than four edits.

    The result may also be 0 if it would be below the threshold.

    Args:
        starts: int64[3n + 1], the starts of the details.
        values: uint64[m], the values of the details.
        a: number of the one row among the details.
        b: of the other.
        threshold: 0 to 1.
    """
    i, i_end = starts[a * SECTIONS + CHARACTERS], starts[a * SECTIONS + CHARACTERS + 1]
    j, j_end = starts[b * SECTIONS + CHARACTERS], starts[b * SECTIONS + CHARACTERS + 1]
    longer = max(i_end - i, j_end - j) - 1
    # Each symbol of a row that the other does not have takes an edit, and so does a difference in length.
    only_one, only_other = values[i] & ~values[j], values[j] & ~values[i]
    by_symbols = max(np.int64(popcount(only_one)), np.int64(popcount(only_other)))
    least = max(by_symbols, abs((i_end - i) - (j_end - j)))
    if least > MOST_EDITS or 1.0 - least / longer < threshold:
        return 0.0
    distance = edit_distance(values, i + 1, i_end, j + 1, j_end)
    return 1.0 - distance / longer if distance <= MOST_EDITS else 0.0


@inner
def edit_distance(values, i, i_end, j, j_end):
    """Return the edit distance of values[i:i_end], 1 to 64 symbols, and values[j:j_end].

    After each symbol of the second, `more` and `less` say in which rows of the column of the dynamic program
    the distance is by one more, or by one less, than in the row before.
    """
    size = i_end - i
    last = np.uint64(1) << np.uint64(size - 1)
    more, less = ~np.uint64(0), np.uint64(0)
    distance = size
    for place in range(j, j_end):
        symbol = values[place]
        equal = np.uint64(0)
        for k in range(size):
            equal |= np.uint64(values[i + k] == symbol) << np.uint64(k)
        diagonal = (((equal & more) + more) ^ more) | equal | less
        raised, lowered = less | ~(diagonal | more), more & diagonal
        distance += np.int64((raised & last) != np.uint64(0))
        distance -= np.int64((lowered & last) != np.uint64(0))
        raised = (raised << np.uint64(1)) | np.uint64(1)
        lowered <<= np.uint64(1)
        more, less = lowered | ~(diagonal | raised), raised & diagonal
    return distance


@kernel
def edit_similarities(starts, values, left, right):
    """Return float64[p]: the edit similarity of rows left[i] and right[i]; NaN unless both are short."""
    result = full(left.size, np.nan, np.float64)
    for p in range(left.size):
        if is_short(starts, left[p]) and is_short(starts, right[p]):
            result[p] = edit_similarity(starts, values, left[p], right[p], 0.0)
    return result
