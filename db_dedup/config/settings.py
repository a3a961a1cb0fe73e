"""A settings file, `dedup.toml`, and where the database is."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import ConfigDict, Field, ValidationError

from db_dedup.config.engine import EngineSettings, engine_settings
from db_dedup.config.fields import Frozen, Name, check_known
from db_dedup.config.schedule import ScheduleSettings, schedule_settings
from db_dedup.config.server import ServerSettings, server_settings
from db_dedup.config.table import TABLE_SETTINGS, WatchedTable, watched_table
from db_dedup.encodings import read_utf8
from db_dedup.errors import ConfigError, InvalidArgumentError, UnknownNameError
from db_dedup.setting_faults import first_fault
from db_dedup.translation import Phrase

_FILE_SETTINGS: Final[Mapping[str, str]] = {
    "user_dictionary": "user_words",
    "stop_words_file": "stop_word_list",
}
"""Settings that name a file of words, and what its lines become."""


class Settings(Frozen):
    """A whole `dedup.toml`."""

    url: Name | None = None
    store_url: Name | None = None
    schema_name: Name = Field(default="dedup", alias="schema")
    prefix: Name = "dedup_"
    engine: EngineSettings = Field(default_factory=EngineSettings, description="a section")
    tables: dict[str, WatchedTable] = Field(default_factory=dict, description="a section for each table")
    server: ServerSettings = Field(default_factory=ServerSettings, description="a section")
    schedule: ScheduleSettings | None = Field(default=None, description="a section")

    model_config = ConfigDict(populate_by_name=True)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read `dedup.toml`.

        Raises:
            ConfigError: it is not there, is no TOML, or says something we do not know.
        """
        if not isinstance(path, Path | str):
            raise InvalidArgumentError(
                "path should be a Path or its text, not a {given_type}", given_type=type(path).__name__
            )
        path = Path(path)
        if not path.exists():
            raise ConfigError("no settings file {path}: `db-dedup init` writes one", path=path)
        text = read_utf8(path, Phrase("settings file"))
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also of a number, or a nesting, beyond all limits
            raise ConfigError(
                "{path} is no valid TOML: {error}{hint}", path=path, error=error, hint=_path_hint(str(error))
            ) from None
        return cls._from_document(document, path)

    @classmethod
    def _from_document(cls, document: dict[str, Any], path: Path) -> Self:
        check_known(Phrase("section"), document, {"database", "engine", "schedule", "server", "tables"})
        database = _section(document, "database")
        _refuse_read_escapes(database, path)
        check_known(Phrase("setting in [database]"), database, {"url", "store_url", "schema", "prefix"})
        engine = engine_settings(_section(document, "engine"), path.parent)
        tables = {
            name: watched_table(name, _resolve_files(name, _section(document["tables"], name), path.parent))
            for name in _section(document, "tables")
        }
        parts: dict[str, Any] = {"tables": tables, "engine": engine}
        if "server" in document:
            parts["server"] = server_settings(_section(document, "server"), path)
        if "schedule" in document:
            parts["schedule"] = schedule_settings(_section(document, "schedule"), tables, path)
        try:
            return cls.model_validate(parts | database)
        except ValidationError as error:
            raise ConfigError("{path}: {fault}", path=path, fault=first_fault(error, cls)) from None

    @property
    def serves(self) -> bool:
        """Whether the file has a section `[server]`."""
        return "server" in self.model_fields_set

    def watched(self, name: str) -> WatchedTable:
        """Return the settings of one table."""
        if not isinstance(name, str):
            raise InvalidArgumentError(
                "name should be the name of a table, not a {given_type}", given_type=type(name).__name__
            )
        if name not in self.tables:
            raise UnknownNameError(Phrase("table of the settings"), name, self.tables)
        return self.tables[name]


def database_url(flag: str | None, settings: Settings | None) -> str:
    """Return the URL to use: the flag, else DB_DEDUP_URL, else that of the file.

    Args:
        flag: the value of --url; None if it is not given.
        settings: of the file; None if no file is read.

    Raises:
        ConfigError: there is no URL.
    """
    url = flag or os.environ.get("DB_DEDUP_URL") or (settings.url if settings else None)
    if not url and settings is None:
        raise ConfigError("no database: give --url or set DB_DEDUP_URL")
    if not url:
        raise ConfigError(
            "no database: give --url, set DB_DEDUP_URL, or write url under [database] in dedup.toml"
        )
    return url


def store_url(flag: str | None, settings: Settings | None) -> str | None:
    """Return the URL of the store, by the same order as `database_url`; None if it is the user's database."""
    return flag or os.environ.get("DB_DEDUP_STORE_URL") or (settings.store_url if settings else None)


def _path_hint(fault: str) -> str:
    """Return what to do if the fault may be a Windows path in double quotes, in which TOML reads escapes."""
    if "Unescaped" not in fault and "hex value" not in fault:
        return ""
    return Phrase("; write a Windows path in single quotes, or with / in place of each backslash")


def _refuse_read_escapes(database: Mapping[str, Any], path: Path) -> None:
    """Refuse a URL whose path had backslashes in double quotes, such as C:\\new: its \\n is a line feed."""
    for name in ("url", "store_url"):
        if any(character < " " for character in str(database.get(name, ""))):
            raise ConfigError(
                "{path}: {name} has a control character in it: write a Windows path in single quotes",
                path=path,
                name=name,
            )


def _section(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError("{name!r} must be a section, its settings below its name in brackets", name=name)
    return section


def _resolve_files(name: str, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the names of files by their lines: their content is part of the recipe."""
    check_known(
        Phrase("setting of table {name!r}", name=name), settings, TABLE_SETTINGS | _FILE_SETTINGS.keys()
    )
    settings = dict(settings)
    for option, target in _FILE_SETTINGS.items():
        if option in settings:
            if target in settings:
                raise ConfigError(
                    "table {name!r}: {option} and {target} say the same thing: keep one",
                    name=name,
                    option=option,
                    target=target,
                )
            file = settings.pop(option)
            if not isinstance(file, str):
                raise ConfigError(
                    "table {name!r}: {option} = {file}: it takes the name of a file",
                    name=name,
                    option=option,
                    file=file,
                )
            settings[target] = _lines(folder / file)
    return settings


def _lines(path: Path) -> tuple[str, ...]:
    text = read_utf8(path, Phrase("word list"))
    return tuple(line.strip() for line in text.splitlines() if line.strip())
