"""Find an engine by its name. Only this module imports a particular engine, and only when it is used."""

from importlib import import_module
from typing import Final

from db_dedup.engines.base import Engine
from db_dedup.errors import UnknownNameError

DEFAULT_ENGINE: Final = "embedded"

_ENGINES: Final = {"embedded": "db_dedup.engines.embedded.engine:EmbeddedEngine"}
"""Name -> module:class."""


def find_engine(name: str | None = None) -> Engine:
    """Return the engine of this name, by default the embedded one.

    Raises:
        UnknownNameError: there is no such engine.
    """
    name = name or DEFAULT_ENGINE
    if name not in _ENGINES:
        raise UnknownNameError("engine", name, _ENGINES)
    module, _, class_name = _ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(module), class_name)()
    return engine
