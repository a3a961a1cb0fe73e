"""Measure which 3-grams of a table are common: the order of prefixes (`short_texts`) puts them last.

They are measured on the sample that frames are measured on, and frozen with these. Where the table changes
later, the order stays: it decides how many rows a look-up reads, never which duplicates are found.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.short_texts import MOST_OF_LONGER
from db_dedup.flow.features.counting import count_features, hash_columns
from db_dedup.flow.features.grams import hash_grams
from db_dedup.flow.text.frames import without_frames
from db_dedup.records.frames import FrameList
from db_dedup.records.recipe import RecipeColumn

MOST_COMMON: Final = 4_096
"""How many grams are kept: 32 KB as they are stored. With twice as many, look-ups read little less."""
_LEAST_ROWS: Final = 2


def measure_common_grams(
    columns: Sequence[RecipeColumn], texts: Sequence[Sequence[str]], frames: FrameList
) -> NDArray[np.uint32]:
    """Return uint32[c]: the upper halves of the hashes of the common 3-grams, from the rarest on.

    Args:
        columns: of the recipe.
        texts: column by column the texts of the sampled rows as they are compared, exact duplicates once.
        frames: what is left out of them.
    """
    hashed = hash_columns(columns, without_frames(texts, frames), hash_grams)
    grams = count_features(hashed, [column.weight for column in columns], "raw")
    is_counted = np.repeat(grams.counts <= MOST_OF_LONGER, grams.counts)
    values, counts = np.unique_counts(grams.hashes[is_counted])
    order = np.lexsort((values, counts))
    order = order[counts[order] >= _LEAST_ROWS][-MOST_COMMON:]
    return (values[order] >> np.uint64(32)).astype(np.uint32)
