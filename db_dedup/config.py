"""What the user settles: which table, which columns, which rule. From TOML, from Python, or as stored.

Precedence everywhere: command-line flag, then environment variable, then `dedup.toml`, then the default.
"""

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from db_dedup.encodings import read_utf8
from db_dedup.errors import ConfigError, InvalidArgumentError, UnknownNameError
from db_dedup.setting_faults import first_fault

RECIPE_VERSION: Final = 2
"""Raised whenever the same settings would give other fingerprints, digests or sketches."""

# The descriptions say what a setting takes; they end the error of one that has another value.
Measure = Literal["none", "word_jaccard", "char_jaccard", "char_overlap", "overlap", "cosine"]
TermFrequency = Literal["raw", "log", "capped", "set"]
StopWords = Literal["drop", "keep"]
Weight = Annotated[int, Field(ge=1, le=1000, description="a whole number from 1 to 1000")]
Radius = Annotated[int, Field(ge=0, le=11, description="a whole number from 0 to 11")]
Share = Annotated[float, Field(ge=0, le=1, description="a number from 0 to 1")]
Count = Annotated[int, Field(ge=1, description="a whole number from 1 on")]
Flag = Annotated[bool, Field(description="true or false")]
Name = Annotated[str, Field(description="a text")]
Words = Annotated[tuple[Name, ...], Field(description="a list of texts")]
_COLUMN: Final = 'a whole number from 1 to 1000, or { kind = "text" or "value", weight = such a number }'
_WITHIN: Final = 'a column, { column = ..., by = "value" or "day" or "month" or "year" }, or a list of these'


class _Frozen(BaseModel):
    """Settings of exact types: neither `"3"` nor `true` is a number.

    Raises:
        InvalidArgumentError: with the setting, its value and what it takes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, *args: object, **data: Any) -> None:
        name = type(self).__name__
        if args:
            raise InvalidArgumentError(f"{name} takes its settings by name, as in Text(weight=2)")
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidArgumentError(f"{name}: {first_fault(error, type(self))}") from None

    # Without this mark, as RootModel has it, pydantic would call the method for each part of a document, and
    # could not say any more where in it a fault is.
    vars(__init__)["__pydantic_base_init__"] = True


class Text(_Frozen):
    """A column whose text is cut into words."""

    kind: Literal["text"] = "text"
    weight: Weight = 1


class Value(_Frozen):
    """A column whose whole value is one feature; 2 is the paper's weight for it (P1)."""

    kind: Literal["value"] = "value"
    weight: Weight = 2


ColumnWeight = Annotated[Text | Value, Field(discriminator="kind", description=_COLUMN)]


class Within(_Frozen):
    """A column that both rows of a pair must agree in; of a date, the given part."""

    column: Name
    by: Literal["value", "day", "month", "year"] = "value"


class Rule(_Frozen):
    """Which candidates count as duplicates, and what a fingerprint is made of.

    Attributes:
        bands: propose pairs by MinHash bands as well, not by the fingerprints alone.
    """

    radius: Radius
    similarity: Measure
    threshold: Share
    term_frequency: TermFrequency
    stop_words: StopWords
    min_features: Count = 3
    bands: Flag


PRESETS: Final[Mapping[str, Rule]] = {
    # The paper's rule (P1): four equal blocks, three bits, and no look at the text.
    "strict": Rule(
        radius=3, similarity="none", threshold=0, term_frequency="raw", stop_words="drop", bands=False
    ),
    # Chosen on labelled petitions: docs/explanation/presets.md has the table.
    "balanced": Rule(
        radius=3,
        similarity="char_overlap",
        threshold=0.57,
        term_frequency="raw",
        stop_words="keep",
        bands=True,
    ),
}
DEFAULT_PRESET: Final = "balanced"


class WatchedTable(_Frozen):
    """A table and how its duplicates are found. What is None is taken from the preset, or from inspection.

    Attributes:
        preset: None where every field of the rule is given, as in a stored recipe.
    """

    name: Name
    columns: dict[str, ColumnWeight] = Field(
        min_length=1, description="a section: each column with its weight"
    )
    table: Name | None = None
    schema_name: Name | None = Field(default=None, alias="schema")
    key: tuple[Name, ...] | None = Field(
        default=None, min_length=1, description="a column, or a list of columns"
    )
    order: Name | None = None
    where: Name | None = None
    within: tuple[Within, ...] = Field(default=(), description=_WITHIN)
    preset: Literal["strict", "balanced"] | None = DEFAULT_PRESET
    radius: Radius | None = None
    similarity: Measure | None = None
    threshold: Share | None = None
    term_frequency: TermFrequency | None = None
    min_features: Count | None = None
    bands: Flag | None = None
    segmenter: Name = "jieba"
    normaliser: Literal["plain", "tweet"] = "plain"
    user_words: Words = ()
    stop_words: StopWords | None = None
    stop_word_list: Words | None = None
    abridge_above: int = Field(default=1000, ge=2, description="a whole number from 2 on")

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _accept_short_forms(cls, data: Any) -> Any:
        """`title = 2` is a text of weight 2, as is `{ weight = 2 }`; key and within take one name."""
        if not isinstance(data, Mapping):
            return data
        data = dict(data)
        columns = data.get("columns")
        if isinstance(columns, Mapping):
            data["columns"] = {name: _column_from(spec) for name, spec in columns.items()}
        if isinstance(data.get("key"), str):
            data["key"] = (data["key"],)
        for name in ("key", "user_words", "stop_word_list"):
            if isinstance(data.get(name), list):
                data[name] = tuple(data[name])
        within = data.get("within")
        if isinstance(within, str | Mapping):
            within = [within]
        if isinstance(within, list | tuple):
            data["within"] = tuple({"column": w} if isinstance(w, str) else w for w in within)
        return data

    @model_validator(mode="after")
    def _require_whole_rule(self) -> Self:
        missing = Rule.model_fields.keys() - self._own_rule().keys()
        if self.preset is None and missing:
            raise ValueError(f"without a preset, {', '.join(sorted(missing))} must be given")
        return self

    @property
    def table_name(self) -> str:
        """The table's name in the database, where it differs from the name it is watched under."""
        return self.table or self.name

    @property
    def rule(self) -> Rule:
        """The preset with this table's own choices over it."""
        own = self._own_rule()
        return Rule(**own) if self.preset is None else PRESETS[self.preset].model_copy(update=own)

    def resolved(self) -> Self:
        """The same settings with every field of the rule given, so that they depend on no preset."""
        return self.model_copy(update={"preset": None, **self.rule.model_dump()})

    def _own_rule(self) -> dict[str, Any]:
        return {field: value for field in Rule.model_fields if (value := getattr(self, field)) is not None}

    def recipe_digest(self) -> str:
        """SHA-256, in hex, of everything that decides a fingerprint or which rows have one."""
        rule = self.rule
        parts = {
            "version": RECIPE_VERSION,
            "table": (self.schema_name, self.table_name),
            "key": self.key,
            # In their order: two rows are copies when their columns, one after the other, are equal.
            "columns": [(name, column.model_dump()) for name, column in self.columns.items()],
            "within": [w.model_dump() for w in self.within],
            "where": self.where,
            "order": self.order,
            "segmenter": self.segmenter,
            "normaliser": self.normaliser,
            "user_words": self.user_words,
            "stop_words": rule.stop_words if self.stop_word_list is None else self.stop_word_list,
            "term_frequency": rule.term_frequency,
            "min_features": rule.min_features,
            "bands": rule.bands,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class Settings(_Frozen):
    """A whole `dedup.toml`."""

    url: Name | None = None
    store_url: Name | None = None
    schema_name: Name = Field(default="dedup", alias="schema")
    prefix: Name = "dedup_"
    tables: dict[str, WatchedTable] = Field(default_factory=dict, description="a section for each table")

    model_config = ConfigDict(populate_by_name=True)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read `dedup.toml`.

        Raises:
            ConfigError: it is not there, is no TOML, or says something we do not know.
        """
        if not isinstance(path, Path | str):
            raise InvalidArgumentError(f"path should be a Path or its text, not a {type(path).__name__}")
        path = Path(path)
        if not path.exists():
            raise ConfigError(f"no settings file {path}: `db-dedup init` writes one")
        text = read_utf8(path, "settings file")
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also of a number, or a nesting, beyond all limits
            raise ConfigError(f"{path} is no valid TOML: {error}{_path_hint(str(error))}") from None
        return cls._from_document(document, path)

    @classmethod
    def _from_document(cls, document: dict[str, Any], path: Path) -> Self:
        check_known("section", document, {"database", "tables"})
        database = _section(document, "database")
        _refuse_read_escapes(database, path)
        check_known("setting in [database]", database, {"url", "store_url", "schema", "prefix"})
        tables = {
            name: watched_table(name, _resolve_files(name, _section(document["tables"], name), path.parent))
            for name in _section(document, "tables")
        }
        try:
            return cls.model_validate({"tables": tables, **database})
        except ValidationError as error:
            raise ConfigError(f"{path}: {first_fault(error, cls)}") from None

    def watched(self, name: str) -> WatchedTable:
        """The settings of one table."""
        if not isinstance(name, str):
            raise InvalidArgumentError(f"name should be the name of a table, not a {type(name).__name__}")
        if name not in self.tables:
            raise UnknownNameError("watched table", name, self.tables)
        return self.tables[name]


_TABLE_SETTINGS: Final = {f.alias or field for field, f in WatchedTable.model_fields.items()} - {"name"}
_FILE_SETTINGS: Final[Mapping[str, str]] = {
    "user_dictionary": "user_words",
    "stop_words_file": "stop_word_list",
}
"""Settings that name a file of words, and what its lines become."""


def watched_table(name: str, settings: Mapping[str, Any]) -> WatchedTable:
    """Check one table's settings.

    Raises:
        ConfigError: with the table, the place in it and the fault.
    """
    check_known(f"setting of table {name!r}", settings, _TABLE_SETTINGS)
    columns = settings.get("columns")
    for column, spec in columns.items() if isinstance(columns, Mapping) else ():
        if isinstance(spec, Mapping):
            check_known(f"setting of column {column!r} of table {name!r}", spec, set(Text.model_fields))
    try:
        return WatchedTable.model_validate({"name": name, **settings})
    except ValidationError as error:
        raise ConfigError(f"table {name!r}: {first_fault(error, WatchedTable)}") from None


def database_url(flag: str | None, settings: Settings | None) -> str:
    """The URL to use: the flag, then DB_DEDUP_URL, then the file's."""
    url = flag or os.environ.get("DB_DEDUP_URL") or (settings.url if settings else None)
    if not url:
        raise ConfigError(
            "no database: give --url, set DB_DEDUP_URL, or write url under [database] in dedup.toml"
        )
    return url


def store_url(flag: str | None, settings: Settings | None) -> str | None:
    """The URL of the database for our tables, found in the same order; None: they are in the user's."""
    return flag or os.environ.get("DB_DEDUP_STORE_URL") or (settings.store_url if settings else None)


def check_known(kind: str, given: Mapping[str, Any], known: set[str]) -> None:
    """Raise UnknownNameError for the first name that is not known."""
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def _column_from(spec: Any) -> Any:
    if isinstance(spec, bool):
        return spec
    if isinstance(spec, int):
        return {"kind": "text", "weight": spec}
    if isinstance(spec, Mapping):
        return {"kind": "text", **spec}
    return spec


def _path_hint(fault: str) -> str:
    """What to do where the fault may be a Windows path in double quotes, in which TOML reads escapes."""
    if "Unescaped" not in fault and "hex value" not in fault:
        return ""
    return "; write a Windows path in single quotes, or with / in place of each backslash"


def _refuse_read_escapes(database: Mapping[str, Any], path: Path) -> None:
    """Refuse a URL whose path had backslashes in double quotes, such as C:\\new: its \\n is a line feed."""
    for name in ("url", "store_url"):
        if any(character < " " for character in str(database.get(name, ""))):
            raise ConfigError(
                f"{path}: {name} has a control character in it: write a Windows path in single quotes"
            )


def _section(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{name!r} must be a section, its settings below its name in brackets")
    return section


def _resolve_files(name: str, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the names of files by their lines: what stands in them is part of the recipe."""
    check_known(f"setting of table {name!r}", settings, _TABLE_SETTINGS | _FILE_SETTINGS.keys())
    settings = dict(settings)
    for option, target in _FILE_SETTINGS.items():
        if option in settings:
            if target in settings:
                raise ConfigError(f"table {name!r}: {option} and {target} say the same thing: keep one")
            file = settings.pop(option)
            if not isinstance(file, str):
                raise ConfigError(f"table {name!r}: {option} = {file}: it takes the name of a file")
            settings[target] = _lines(folder / file)
    return settings


def _lines(path: Path) -> tuple[str, ...]:
    text = read_utf8(path, "word list")
    return tuple(line.strip() for line in text.splitlines() if line.strip())
