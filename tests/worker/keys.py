"""Keys of many types for a table of letters: what each dialect calls the type, and ten values of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import Column, Integer
from sqlalchemy.types import UserDefinedType

ROWS = 10
"""So many rows a history may write."""

NUMBER = "number"
"""A column beside a key that no constraint keeps unique: writers address a row by it."""


class Declared(UserDefinedType[Any]):
    """A type by the name that the database has for it; values go to the driver as they are."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


@dataclass(frozen=True)
class Key:
    """The key of a table of letters.

    Attributes:
        types: column name -> type; "" declares none.
        values: of these columns, for each row.
        is_constrained: the columns are the primary key.
        needs: a statement that has to run before the table is made.
    """

    types: Mapping[str, str]
    values: Sequence[tuple[Any, ...]]
    is_constrained: bool = True
    needs: str | None = None

    def columns(self) -> list[Column[Any]]:
        """New columns, for one table."""
        columns: list[Column[Any]] = [
            Column(name, Declared(type_name), primary_key=self.is_constrained, nullable=False)
            for name, type_name in self.types.items()
        ]
        # Not unique: looking for a second one, MariaDB and MySQL lock gaps, also at READ COMMITTED.
        return columns if self.is_constrained else [*columns, Column(NUMBER, Integer, index=True)]

    def of_row(self, row: int) -> dict[str, Any]:
        """The values of a row."""
        values = dict(zip(self.types, self.values[row], strict=True))
        return values if self.is_constrained else {**values, NUMBER: row}

    def address(self, row: int) -> dict[str, Any]:
        """Values that no other row has, for a statement's condition."""
        return self.of_row(row) if self.is_constrained else {NUMBER: row}


def _single(type_name: str, values: Sequence[Any], **more: Any) -> Key:
    return Key({"id": type_name}, [(value,) for value in values], **more)


_UUIDS = [uuid5(UUID(int=0), str(row)) for row in range(ROWS)]
_BYTES = [bytes([row, 0, 255, 10, 34, 92, 128, 194, 13, 39, 37, 58, 9, 32, row, 0]) for row in range(ROWS)]
_EQUAL_WORDS = ["aa", "AA", "aA", "b", "B", "word", "Word", "WORD", "zz", "ZZ"]
_ODD_TEXTS = (
    *("", 'quo"te', "back\\slash", "new\nline", "tab\there"),
    *("\x01 control", "信 🏮", "a'b%s:c", "</script>", "a\u2028b"),
)  # fmt: skip
_TYPED = [(row % 2, text) for row, text in enumerate(_ODD_TEXTS)]
_MOMENTS = [
    *(f"2024-01-0{day} 07:59:59.{part}+08:00" for day in (1, 2) for part in ("000000", "500000", "1")),
    *("2023-12-31 22:59:59+00:00", "2024-02-29 00:00:00-11:30", "1969-12-31 23:59:59+00:00"),
]  # fmt: skip
_LOCAL_MOMENTS = [f"20{20 + row}-10-25 0{row}:30:00.{row}" for row in range(ROWS)]
_DECIMALS = ["0", "0.1", "1.5", "-3.25", "10", "100", "99999999.999", "-0.001", "7.000", "12345678.9"]

_PLAIN = Key({"id": "INTEGER"}, [(row,) for row in range(ROWS)])
_COMPOSITE = Key({"year": "INTEGER", "no": "VARCHAR(9)"}, [(row % 3, f'n"{row}') for row in range(ROWS)])
PLAIN_KEYS = (_PLAIN, _COMPOSITE)

_CASELESS = "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"

_ODD_KEYS: Mapping[str, Mapping[str, Key]] = {
    "sqlite": {
        "uuid": _single("UUID", [value.bytes for value in _UUIDS]),
        "binary": _single("BLOB", _BYTES),
        "caseless": _single("TEXT COLLATE NOCASE", _EQUAL_WORDS, is_constrained=False),
        "moment": _single("TIMESTAMP", [*_MOMENTS, "0001-01-01 00:00:00"]),
        "decimal": _single("DECIMAL(11, 3)", [float(value) / 3 for value in _DECIMALS]),
        "texts": Key({"year": "INTEGER", "no": "TEXT"}, _TYPED),
        "untyped": _single("", [0, 1.5, 1 / 3, "two", b"\x003", -4, "５", 6e20, _UUIDS[0].bytes, 0.1]),
        "texts of bytes": _single("TEXT", [value.bytes for value in _UUIDS]),
    },
    "postgresql": {
        "uuid": _single("uuid", [str(value) for value in _UUIDS]),
        "binary": _single("bytea", _BYTES),
        "caseless": _single("text COLLATE caseless", _EQUAL_WORDS, is_constrained=False, needs=_CASELESS),
        "moment": _single("timestamp(6) with time zone", [*_MOMENTS, "1969-12-31 23:59:59+00 BC"]),
        "decimal": _single("numeric", [*_DECIMALS[:-1], "1.230"]),
        "texts": Key({"year": "integer", "no": "text"}, _TYPED),
    },
    "mariadb": {
        "uuid": _single("uuid", [str(value) for value in _UUIDS]),
        "binary": _single("binary(16)", _BYTES),
        "caseless": _single("varchar(20) COLLATE utf8mb4_general_ci", _EQUAL_WORDS, is_constrained=False),
        "moment": _single("timestamp(6)", _LOCAL_MOMENTS),
        "decimal": _single("decimal(11, 3)", _DECIMALS),
        "texts": Key({"year": "integer", "no": "varchar(20) COLLATE utf8mb4_bin"}, _TYPED),
    },
}

_WITHOUT_UUIDS = {"uuid": _single("char(36)", [str(value) for value in _UUIDS])}
ODD_KEYS: Mapping[str, Mapping[str, Key]] = {**_ODD_KEYS, "mysql": {**_ODD_KEYS["mariadb"], **_WITHOUT_UUIDS}}
"""Name of SQLAlchemy's dialect -> what is odd about a key -> the key."""
