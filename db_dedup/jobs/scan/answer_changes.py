"""How much of the stored answer a scan changed: what a scheduled scan repaired."""

from dataclasses import dataclass

import numpy as np

from db_dedup.jobs.scan.row_answers import NOT_SET, RowAnswers


@dataclass(frozen=True)
class AnswerChanges:
    """In what an answer differs from the former one; links of exact duplicates count as pairs.

    Attributes:
        groups_changed: groups of either answer that the other one does not have with the same rows and flags.
    """

    pairs_gained: int
    pairs_lost: int
    groups_changed: int


def count_changes(pairs_gained: int, pairs_lost: int, before: RowAnswers, after: RowAnswers) -> AnswerChanges:
    """Add the links and groups that differ to the pairs that do.

    Args:
        pairs_gained: pairs that were written, links aside.
        pairs_lost: pairs that were deleted, links aside.
        before: the former answer of the rows for which it differs, and of those that are gone.
        after: the new answer of the same rows in the same order; NULL for those that are gone.
    """
    is_relinked = before.copy_of != after.copy_of
    return AnswerChanges(
        pairs_gained + int(np.count_nonzero(is_relinked & (after.copy_of != NOT_SET))),
        pairs_lost + int(np.count_nonzero(is_relinked & (before.copy_of != NOT_SET))),
        count_changed_groups(before, after),
    )


def count_changed_groups(before: RowAnswers, after: RowAnswers) -> int:
    """Return how many groups of either answer the other one does not have with the same rows and flags.

    Args:
        before: the former answer of the rows for which it differs, and of those that are gone.
        after: the new answer of the same rows in the same order; NULL for those that are gone.
    """
    is_moved = before.group_id != after.group_id
    groups = np.concatenate(
        [before.group_id[is_moved], after.group_id[is_moved], before.ids[before.has_other_flags(after)]]
    )
    return int(np.unique(groups[groups != NOT_SET]).size)
