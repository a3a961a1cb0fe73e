"""Whatever the Python API takes or gives is a public name."""

import inspect
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncEngine

import db_dedup
import db_dedup.errors
from db_dedup.errors import DedupError

# Names that `get_type_hints` needs beside those of a module: imported there for type checkers alone.
_FOR_CHECKERS = {
    "Text": db_dedup.Text,
    "Value": db_dedup.Value,
    "AsyncBind": db_dedup.AsyncBind,
    "SyncBind": db_dedup.SyncBind,
    "AsyncEngine": AsyncEngine,
    "AnySession": db_dedup.AnySession,
    "Sessions": db_dedup.Sessions,
    "ComparisonPlan": db_dedup.ComparisonPlan,
    "TableWorker": db_dedup.TableWorker,
}


def own_types(hint: Any) -> Iterator[type]:
    """Our own classes in a type hint."""
    for part in get_args(hint):
        yield from own_types(part)
    kind = get_origin(hint) or hint
    if isinstance(kind, list | tuple):
        for part in kind:
            yield from own_types(part)
    if inspect.isclass(kind) and kind.__module__.startswith("db_dedup"):
        yield kind


def hints(function: Callable[..., Any]) -> Iterator[Any]:
    yield from get_type_hints(function, localns=_FOR_CHECKERS, include_extras=True).values()


def members(kind: type) -> Iterator[Any]:
    """The hints of a class: of its fields, properties and public methods."""
    if is_dataclass(kind) or issubclass(kind, BaseModel):
        names = [f.name for f in fields(kind)] if is_dataclass(kind) else list(kind.model_fields)
        found = get_type_hints(kind, include_extras=True)
        yield from (found[name] for name in names)
    if kind in (db_dedup.Database, db_dedup.Deduplicator):  # the others are made by us, or have fields
        yield from hints(kind.__init__)
    for base in kind.__mro__:
        if not base.__module__.startswith("db_dedup"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_"):
                continue
            function = member.fget if isinstance(member, property) else inspect.unwrap(getattr(kind, name))
            if isinstance(function, types.FunctionType | types.MethodType):
                yield from hints(function)


def reachable() -> set[type]:
    """Our classes that the public names, and these classes themselves, take or give."""
    found: set[type] = set()
    waiting: list[Any] = [getattr(db_dedup, name) for name in db_dedup.__all__]
    while waiting:
        thing = waiting.pop()
        is_function = isinstance(thing, types.FunctionType)
        asked = members(thing) if inspect.isclass(thing) else hints(thing) if is_function else [thing]
        new = {kind for hint in asked for kind in own_types(hint)} - found
        found |= new
        waiting += new
    return found


def test_what_the_api_takes_and_gives_is_public() -> None:
    missing = {f"{kind.__module__}.{kind.__qualname__}" for kind in reachable() if not is_public(kind)}
    assert missing == set()


def is_public(kind: type) -> bool:
    return getattr(db_dedup, kind.__name__, None) is kind and kind.__name__ in db_dedup.__all__


def test_the_walk_finds_what_is_deep_inside() -> None:
    names = {kind.__name__ for kind in reachable()}
    assert {"MarkedToken", "PairSetting", "Batch", "AttachmentState", "Within"} <= names


def test_every_error_is_public() -> None:
    errors = [kind for kind in vars(db_dedup.errors).values() if inspect.isclass(kind)]
    ours = [kind for kind in errors if issubclass(kind, DedupError)]
    assert ours
    assert [kind.__name__ for kind in ours if not is_public(kind)] == []


def test_every_public_name_is_there_and_in_order() -> None:
    assert sorted(db_dedup.__all__) == db_dedup.__all__
    assert all(hasattr(db_dedup, name) for name in db_dedup.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Deduplicate'"):
        getattr(db_dedup, "Deduplicate")  # noqa: B009


def test_aliases_are_public() -> None:
    """An alias of types is no class, and the walk does not meet its name."""
    assert {"RowKey", "Record", "ColumnWeight"} <= set(db_dedup.__all__)


def test_nothing_of_asyncio_is_needed_without_it() -> None:
    """SQLAlchemy's asyncio module fails to load where greenlet is not installed."""
    code = "import sys; sys.modules['greenlet'] = None; from db_dedup import Deduplicator, find_duplicates"
    subprocess.run([sys.executable, "-c", code], check=True)
