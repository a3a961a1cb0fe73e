"""Which rows are not compared, because a change in the queue may still give them another answer."""

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.jobs.scan.scanned_table import ScannedTable
from db_dedup.jobs.verify.answers import Answer, pairs_compared
from db_dedup.store.changes import waiting_keys
from db_dedup.store.fingerprints import FingerprintStore


def unsettled_keys(connection: Connection, store: FingerprintStore, scanned: ScannedTable) -> set[str]:
    """Return the keys of rows that have a change in the queue, and of their exact duplicates.

    Which of the exact duplicates is the canonical row, with the pairs and the sketch, depends on all of them.
    Exact duplicates by the stored text count as well as those by the present text.
    """
    waiting = waiting_keys(connection, store)
    if not waiting:
        return waiting
    stored = [(row_key, row.digest) for row_key, row in store.read_rows(connection)]
    present = zip(scanned.row_keys, map(bytes, scanned.table.digests), strict=True)
    rows = [*stored, *present]
    digests = {digest for row_key, digest in rows if row_key in waiting} - {NO_FEATURES_DIGEST}
    return waiting | {row_key for row_key, digest in rows if digest in digests}


def without_unsettled(old: Answer, new: Answer, is_unsettled: NDArray[np.bool_]) -> tuple[Answer, Answer]:
    """Return both answers without pairs of these rows, and without groups that hold one in either answer.

    Other pairs in such a group stay, unless the group is abridged in either answer: then which pairs are
    stored depends on its rows.

    Args:
        old: the stored answer.
        new: the fresh one.
        is_unsettled: bool[n], the rows.
    """
    is_left_out = old.groups.grouped_with(is_unsettled) | new.groups.grouped_with(is_unsettled)
    is_abridged = is_left_out & (old.groups.in_abridged | new.groups.in_abridged)

    def settled(answer: Answer) -> Answer:
        pairs = answer.pairs[~(is_unsettled[answer.pairs["a"]] | is_unsettled[answer.pairs["b"]])]
        return Answer(pairs_compared(pairs, is_abridged), answer.groups.without(is_left_out))

    return settled(old), settled(new)
