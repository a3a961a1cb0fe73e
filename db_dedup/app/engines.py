"""Find an engine by its name. Only this module imports a particular engine, and only when it is used."""

from importlib import import_module
from typing import Any, Final

from db_dedup.config import EngineSettings
from db_dedup.engines.base import Engine
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.translation import Phrase

DEFAULT_ENGINE: Final = "embedded"

_ENGINES: Final = {
    "embedded": "db_dedup.engines.embedded.engine:EmbeddedEngine",
    "spark": "db_dedup.engines.spark.engine:SparkEngine",
}
"""Name -> module:class."""

_SETTINGS: Final = {
    "embedded": ("matching_mb",),
    "spark": ("master", "jars", "partitions", "options"),
}
"""Name -> the settings that only this engine has; an engine without any is made without settings."""


def settings_for(name: str, settings: EngineSettings) -> EngineSettings:
    """Return those of some settings that an engine has, for this engine."""
    return EngineSettings(name=name, **{own: getattr(settings, own) for own in _SETTINGS.get(name, ())})


def find_engine(settings: EngineSettings | None = None) -> Engine:
    """Return an engine, by default the embedded one.

    Args:
        settings: the name of the engine, and all else that it needs.

    Raises:
        UnknownNameError: there is no such engine.
        ConfigError: it cannot be used by these settings.
    """
    settings = settings or EngineSettings()
    name = settings.name or DEFAULT_ENGINE
    if name not in _ENGINES:
        raise UnknownNameError(Phrase("engine"), name, _ENGINES)
    for other, names in _SETTINGS.items():
        given = [setting for setting in settings.given() if setting in names]
        if given and other != name:
            raise ConfigError(
                "{settings}: the engine {name!r} has no such settings; add --engine {other}",
                settings=", ".join(given),
                name=name,
                other=other,
            )
    module, _, class_name = _ENGINES[name].partition(":")
    made: Any = getattr(import_module(module), class_name)
    engine: Engine = made(settings) if name in _SETTINGS else made()
    return engine
