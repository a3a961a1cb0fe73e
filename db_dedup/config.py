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

from db_dedup.errors import ConfigError, InvalidArgumentError, UnknownNameError

RECIPE_VERSION: Final = 2
"""Raised whenever the same settings would give other fingerprints, digests or sketches."""

Measure = Literal["none", "word_jaccard", "char_jaccard", "char_overlap", "overlap", "cosine"]
TermFrequency = Literal["raw", "log", "capped", "set"]
StopWords = Literal["drop", "keep"]


class _Frozen(BaseModel):
    """Settings that do not change.

    Raises:
        InvalidArgumentError: when it is called with what it cannot take.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, *args: object, **data: Any) -> None:
        name = type(self).__name__
        if args:
            raise InvalidArgumentError(f"{name} takes its settings by name, as in Text(weight=2)")
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidArgumentError(f"{name}: {_first_fault(error)}") from None

    # Without this mark, as RootModel has it, pydantic would call the method for each part of a document, and
    # could not say any more where in it a fault is.
    vars(__init__)["__pydantic_base_init__"] = True


class Text(_Frozen):
    """A column whose text is cut into words."""

    kind: Literal["text"] = "text"
    weight: int = Field(default=1, ge=1, le=1000)


class Value(_Frozen):
    """A column whose whole value is one feature; 2 is the paper's weight for it (P1)."""

    kind: Literal["value"] = "value"
    weight: int = Field(default=2, ge=1, le=1000)


ColumnWeight = Annotated[Text | Value, Field(discriminator="kind")]


class Within(_Frozen):
    """A column that both rows of a pair must agree in; of a date, the given part."""

    column: str
    by: Literal["value", "day", "month", "year"] = "value"


class Rule(_Frozen):
    """Which candidates count as duplicates, and what a fingerprint is made of.

    Attributes:
        bands: propose pairs by MinHash bands as well, not by the fingerprints alone.
    """

    radius: int = Field(ge=0, le=11)
    similarity: Measure
    threshold: float = Field(ge=0, le=1)
    term_frequency: TermFrequency
    stop_words: StopWords
    min_features: int = Field(default=3, ge=1)
    bands: bool


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

    name: str
    columns: dict[str, ColumnWeight] = Field(min_length=1)
    table: str | None = None
    schema_name: str | None = Field(default=None, alias="schema")
    key: tuple[str, ...] | None = Field(default=None, min_length=1)
    order: str | None = None
    where: str | None = None
    within: tuple[Within, ...] = ()
    preset: Literal["strict", "balanced"] | None = DEFAULT_PRESET
    radius: int | None = Field(default=None, ge=0, le=11)
    similarity: Measure | None = None
    threshold: float | None = Field(default=None, ge=0, le=1)
    term_frequency: TermFrequency | None = None
    min_features: int | None = Field(default=None, ge=1)
    bands: bool | None = None
    segmenter: str = "jieba"
    normaliser: Literal["plain", "tweet"] = "plain"
    user_words: tuple[str, ...] = ()
    stop_words: StopWords | None = None
    stop_word_list: tuple[str, ...] | None = None
    abridge_above: int = Field(default=1000, ge=2)

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

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

    url: str | None = None
    store_url: str | None = None
    schema_name: str = "dedup"
    prefix: str = "dedup_"
    tables: dict[str, WatchedTable] = Field(default_factory=dict)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read `dedup.toml`.

        Raises:
            ConfigError: it is not there, is no TOML, or says something we do not know.
        """
        if not isinstance(path, Path | str):
            raise InvalidArgumentError(f"path should be a Path or its text, not a {type(path).__name__}")
        path = Path(path)
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"no settings file {path}: `db-dedup init` writes one") from None
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:  # also of a number, or a nesting, beyond all limits
            raise ConfigError(f"{path} is no valid TOML: {error}") from None
        return cls._from_document(document, path)

    @classmethod
    def _from_document(cls, document: dict[str, Any], path: Path) -> Self:
        check_known("section", document, {"database", "tables"})
        database = _section(document, "database")
        check_known("setting in [database]", database, {"url", "store_url", "schema", "prefix"})
        tables = {
            name: watched_table(name, _resolve_files(name, _section(document["tables"], name), path.parent))
            for name in _section(document, "tables")
        }
        renamed = {"schema": "schema_name"}
        try:
            return cls(tables=tables, **{renamed.get(k, k): v for k, v in database.items()})
        except ValidationError as error:
            raise ConfigError(f"{path}: {_first_fault(error)}") from None

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
        raise ConfigError(f"table {name!r}: {_first_fault(error)}") from None


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
            settings[target] = _lines(folder / str(settings.pop(option)))
    return settings


def _lines(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read word list {path}: {error.strerror}") from None
    except ValueError as error:  # no UTF-8, or no file name
        raise ConfigError(f"cannot read word list {str(path)!r}: {error}") from None
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _first_fault(error: ValidationError) -> str:
    first = error.errors()[0]
    place = list(first["loc"])
    if place[:1] == ["columns"]:
        del place[2:3]  # which kind of column it was taken for
    fault = ": ".join(filter(None, (".".join(map(str, place)), first["msg"])))
    return " ".join(fault.split())  # the names in it are the user's
