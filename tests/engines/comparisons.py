"""How often the scan compares each two rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._by_pointer import address_of
from db_dedup.flow._compiled import addressed
from db_dedup.flow.compare.kernels import _ARGUMENTS
from db_dedup.flow.matching._join_sharing import join_sharing
from db_dedup.flow.matching.budget import Budget
from db_dedup.progress import NullProgress
from tests.engines.reference import MatchRule, Row, table_of


def _count_comparison(a: Any, b: Any, rows: Any, rule: Any) -> Any:  # noqa: ARG001 - as `_confirmed`
    """Take no pair for a duplicate pair; count in `rejected`, a table of all pairs, how often it is asked."""
    rows.rejected[min(a, b) * rows.fingerprints.size + max(a, b)] += 1
    return False, np.nan


def count_comparisons(rows: Sequence[Row], rule: MatchRule) -> NDArray[np.int64]:
    """Return int64[n, n]: how often rows a < b that share hashes are compared, if no two are duplicates."""
    table, counts = table_of(rows), np.zeros((len(rows), len(rows)), np.int64)
    numbers = rule.rule.numbers._replace(confirmed_at=address_of(addressed(_count_comparison), _ARGUMENTS))
    arrays = table.arrays(slice(None), counts.reshape(-1))
    of_all = np.zeros(len(rows), np.uint64), np.arange(len(rows), dtype=np.int32), arrays, numbers
    for left, _ in join_sharing(table.sketches, *of_all, NullProgress(), Budget()):
        assert left.size == 0
    return counts
