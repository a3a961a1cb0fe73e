"""How a row is named: by the text of its key, or by the values that a caller hands over."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

RowKey = str | int | Decimal | UUID | date | bytes | tuple[object, ...]
"""The row key as text; or the value of the key column; or a tuple with a value for each of several key
columns, in their order. A moment is a `datetime`, which is a `date`."""

Record = Mapping[str, object]
"""Column name -> value; a column that is left out is NULL."""

MAX_KEY_LENGTH: Final = 700
"""Characters in a row key: what fits an InnoDB index (3,072 bytes) beside two integers."""
