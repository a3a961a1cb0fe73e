"""What differs between a checked record and the rows that it duplicates."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from db_dedup.app.row_texts import RowTexts
from db_dedup.present.alignment import align
from db_dedup.present.named_differences import named_differences
from db_dedup.records import Match
from db_dedup.web.models import ChangedPart, Differences, NamedDifference, Scalar

MOST_ROWS: Final = 20
_MOST_CHANGES: Final = 50
_REACH: Final = 10_000
"""Characters in which the next common part is looked for."""


def read_differences(
    reader: RowTexts, record: Mapping[str, Scalar], matches: Sequence[Match]
) -> dict[str, Differences]:
    """Return row key -> differences, for the nearest rows that are still in the table."""
    texts = reader.of_record(record)
    found = reader.read([match.row_key for match in matches[:MOST_ROWS] if not match.is_reserved])
    return {key: _differences(reader.columns, texts, row) for key, row in found.items()}


def _differences(columns: Sequence[str], record: Sequence[str], row: Sequence[str]) -> Differences:
    named = {
        sort: NamedDifference(only_record=list(names.only_a), only_row=list(names.only_b))
        for sort, names in named_differences(record, row).items()
    }
    changes = (
        ChangedPart(
            column=column,
            record=left[part.left : part.left_end],
            row=right[part.right : part.right_end],
        )
        for column, left, right in zip(columns, record, row, strict=True)
        for part in align(left, right, _REACH)
        if not part.is_common
    )
    return Differences(named=named, changes=list(islice(changes, _MOST_CHANGES)))
