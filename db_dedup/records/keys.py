"""How a caller names a row, and hands one over."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from uuid import UUID

RowKey = str | int | Decimal | UUID | date | bytes | tuple[object, ...]
"""The row key as text; or the value of the key column; or a tuple with a value for each of several key
columns, in their order. A moment is a `datetime`, which is a `date`."""

Record = Mapping[str, object]
"""Column name -> value; a column that is left out is NULL."""
