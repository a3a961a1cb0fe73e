"""How much of the stored answer a scan changed: what a reconciling scan repaired."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NONE = -1


@dataclass(frozen=True)
class AnswerChanges:
    """In what an answer differs from the one that stood; links of copies count as pairs.

    Attributes:
        groups_changed: groups of either answer that the other does not have just so.
    """

    pairs_gained: int
    pairs_lost: int
    groups_changed: int


def count_changes(
    pairs_gained: int, pairs_lost: int, before: NDArray[np.int64], after: NDArray[np.int64]
) -> AnswerChanges:
    """Add the links and groups that differ to the pairs that do.

    Args:
        pairs_gained: pairs that were written, links of copies aside.
        pairs_lost: pairs that were taken away, links aside.
        before: int64[n, 6], the stored answer as `FingerprintStore.read_answer` gives it, for the rows whose
            entry changed and for those that are gone.
        after: int64[n, 6], the new answer of the same rows in the same order; -1 for those that are gone.
    """
    relinked, moved = (before[:, column] != after[:, column] for column in (1, 2))
    reflagged = np.any(before[:, 3:] != after[:, 3:], axis=1)
    groups = np.concatenate([before[moved, 2], after[moved, 2], before[reflagged, 0]])
    return AnswerChanges(
        pairs_gained + int(np.count_nonzero(relinked & (after[:, 1] != _NONE))),
        pairs_lost + int(np.count_nonzero(relinked & (before[:, 1] != _NONE))),
        int(np.unique(groups[groups != _NONE]).size),
    )
