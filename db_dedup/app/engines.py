"""Find an engine by its name. Only this module imports a particular engine, and only when it is used."""

from importlib import import_module
from typing import Any, Final

from db_dedup.config import EngineSettings
from db_dedup.engines.base import Engine
from db_dedup.errors import ConfigError, UnknownNameError

DEFAULT_ENGINE: Final = "embedded"

_ENGINES: Final = {
    "embedded": "db_dedup.engines.embedded.engine:EmbeddedEngine",
    "spark": "db_dedup.engines.spark.engine:SparkEngine",
}
"""Name -> module:class."""

_WITH_SETTINGS: Final = ("spark",)
"""Engines that are made with their settings; others have none."""


def find_engine(name: str | None = None, settings: EngineSettings | None = None) -> Engine:
    """Return an engine, by default the embedded one.

    Args:
        name: of the engine.
        settings: in place of the name, with all else that the engine needs.

    Raises:
        UnknownNameError: there is no such engine.
        ConfigError: it cannot be used by these settings.
    """
    settings = settings or EngineSettings(name=name or DEFAULT_ENGINE)
    name = settings.name or DEFAULT_ENGINE
    if name not in _ENGINES:
        raise UnknownNameError("engine", name, _ENGINES)
    given = settings.given()
    if given and name not in _WITH_SETTINGS:
        raise ConfigError(
            "{settings}: the engine {name!r} has no such settings; add --engine {other}",
            settings=", ".join(given),
            name=name,
            other=_WITH_SETTINGS[0],
        )
    module, _, class_name = _ENGINES[name].partition(":")
    made: Any = getattr(import_module(module), class_name)
    engine: Engine = made(settings) if name in _WITH_SETTINGS else made()
    return engine
