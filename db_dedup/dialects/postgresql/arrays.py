"""Many values in one parameter, as PostgreSQL itself writes an array.

The driver looks at each value of a list to find its type, which takes it longer than the server takes to find
hundreds of rows. Here the statement names the type.
"""

from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Any, Final

from sqlalchemy import ARRAY, BindParameter, Cast, Dialect, bindparam, cast
from sqlalchemy.types import TypeEngine, UserDefinedType


def array_text(values: Iterable[Any]) -> str:
    """Return `{1,NULL,"text"}` of integers, floats, booleans, bytes, times and texts."""
    values = list(values)
    if set(map(type, values)) == {int}:  # thousands of numbers, written by one call
        return f"{{{str(values)[1:-1]}}}"
    return f"{{{','.join(map(_item_text, values))}}}"


def array_parameter(name: str, kind: TypeEngine[Any], values: Iterable[Any] | None = None) -> Cast[Any]:
    """Return a parameter that takes an iterable and is an array of this type; `values` if they are known."""
    parameter: BindParameter[Any] = bindparam(name, values, type_=_ArrayText(), required=values is None)
    return cast(parameter, ARRAY(kind))


class _ArrayText(UserDefinedType[Iterable[Any]]):
    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TEXT"

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str]:  # noqa: ARG002
        return array_text


def _item_text(value: Any) -> str:
    return _WRITERS.get(type(value), _quoted_text)(value)


def _null(_: None) -> str:
    return "NULL"


def _bytes_text(value: bytes) -> str:
    return f'"\\\\x{value.hex()}"'


def _quoted_text(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    NoneType: _null,
    bool: str,
    bytes: _bytes_text,
    int: str,
}
