"""Duplicates in a data frame of pandas, Polars or PyArrow."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from db_dedup.app.arguments import iterable_of
from db_dedup.errors import ConfigError
from db_dedup.extras import load
from db_dedup.frames.sheet import Sheet, unique_names
from db_dedup.frames.sheet_duplicates import find_in_sheet, propose_columns, risks_of_sheet
from db_dedup.present.scan_words import risk_of_large_group
from db_dedup.progress import Progress
from db_dedup.translation import Phrase, joined

if TYPE_CHECKING:
    from db_dedup.config import Text, Value

FrameT = TypeVar("FrameT")

logger = logging.getLogger(__name__)


def find_duplicates(
    frame: FrameT,
    columns: "Sequence[str] | Mapping[str, Text | Value] | Mapping[str, int] | None" = None,
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> FrameT:
    """Find the near-duplicates among the rows of a data frame.

    What makes wrong pairs likely, such as one group of most rows, is logged as a warning.

    Args:
        frame: n rows: a pandas or Polars DataFrame or a PyArrow Table (anything that narwhals takes).
        columns: the columns to compare, or their settings by name; None: those that hold texts, as `init`
            would choose them. A name that is no text, such as a number in pandas, counts as its text.
        progress: is called at each step of the scan.
        settings: of the table, as in `dedup.toml`: `preset`, `within`, `order`, `threshold`, and so on.

    Returns:
        The same frame with three more columns. `duplicate_group`: the position, counted from 0, of the row
        that represents the group of this row; its own where it has no duplicate. `group_size`: 1 where it has
        none. `is_representative`: keep the rows where it is true to have each matter once.

    Raises:
        MissingExtraError: narwhals is not installed.
        ConfigError: It is no data frame, two of its columns have the same name, it has too many, no column
            holds texts, or a setting is wrong.
    """
    if "key" in settings:
        raise ConfigError("leave key out: the rows of a data frame are known by their positions")
    narwhals = load("narwhals", "frames")
    data = _opened(narwhals, frame)
    names = unique_names([str(name) for name in data.columns])
    given: Sequence[str] | Mapping[str, object] = ()
    if isinstance(columns, Mapping):
        given = {str(name): how for name, how in columns.items()}
    elif columns is not None:
        given = list(map(str, iterable_of(columns, "columns", Phrase("column names"))))
    rows = [tuple(map(_value, row)) for row in data.iter_rows()]
    sheet = Sheet(names, rows, 0, Phrase("data frame"))
    chosen = given or [column.name for column in propose_columns(sheet) if column.is_chosen]
    if not chosen:
        raise ConfigError("no column holds texts to compare: name the columns")
    with find_in_sheet(sheet, chosen, settings, progress=progress) as found:
        groups = found.groups
        for risk in (*risk_of_large_group(found.report), *risks_of_sheet(sheet, found)):
            logger.warning("%s", risk)
    kinds = (narwhals.Int64, narwhals.Int64, narwhals.Boolean)
    added = zip(groups.column_names(names), groups.columns(), kinds, strict=True)
    new = [
        narwhals.new_series(name, values, kind, backend=data.implementation) for name, values, kind in added
    ]
    result: FrameT = data.with_columns(*new).to_native()
    return result


def _opened(narwhals: Any, frame: Any) -> Any:
    """Return the frame as a DataFrame of narwhals."""
    try:
        return narwhals.from_native(frame, eager_only=True)
    except TypeError:
        raise ConfigError(
            "not a data frame in memory: {given_type}", given_type=type(frame).__name__
        ) from None
    except load("narwhals.exceptions", "frames").DuplicateError:
        raise ConfigError(
            "the data frame has more than one column {names}: rename all but one",
            names=_repeated_names(frame),
        ) from None


def _repeated_names(frame: Any) -> str:
    """Return the names that several columns of a pandas DataFrame or a PyArrow Table have."""
    counts = Counter(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    return joined(", ", (repr(name) for name, count in counts.items() if count > 1))


def _value(value: Any) -> Any:
    """Return the value; None for a missing one (NaN, NaT, pandas.NA)."""
    try:
        is_missing = bool(value is None or value != value)  # noqa: PLR0124 - NaN and NaT differ from themselves
    except TypeError:  # the missing value of pandas, which is neither true nor false
        return None
    except ValueError:  # an array, which compares item by item
        return value
    return None if is_missing else value
