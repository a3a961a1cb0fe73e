"""A watched table: its columns, and how its duplicates are found."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from db_dedup.config.fields import Count, Flag, Frozen, Name, Radius, Share, Weight, Words, check_known
from db_dedup.config.rule import (
    DEFAULT_PRESET,
    PRESETS,
    Measure,
    Normaliser,
    PresetName,
    Rule,
    StopWords,
    TermFrequency,
)
from db_dedup.errors import ConfigError
from db_dedup.flow.compare.measures import MEASURES, NO_SIMILARITY
from db_dedup.flow.text.normalise import fold_batch, normalise_batch
from db_dedup.records.calibration import PairSetting
from db_dedup.records.kinds import ExcludedKind
from db_dedup.records.recipe import RECIPE_VERSION, Recipe, RecipeColumn
from db_dedup.setting_faults import first_fault
from db_dedup.translation import Phrase

_COLUMN: Final = 'a whole number from 1 to 1000, or { kind = "text" or "value", weight = such a number }'
_WITHIN: Final = 'a column, { column = ..., by = "value" or "day" or "month" or "year" }, or a list of these'


class Text(Frozen):
    """A column whose text is cut into words."""

    kind: Literal["text"] = "text"
    weight: Weight = 1


class Value(Frozen):
    """A column whose whole value is one feature; 2 is the paper's weight for it (P1)."""

    kind: Literal["value"] = "value"
    weight: Weight = 2


FrameDrift = Literal["rebuild", "wait"]
"""What a scan does if the frames have changed: build a new recipe, or report it and keep the old one."""


ColumnWeight = Annotated[Text | Value, Field(discriminator="kind", description=_COLUMN)]


class Within(Frozen):
    """A column that both rows of a pair must agree in; of a date, the given part."""

    column: Name
    by: Literal["value", "day", "month", "year"] = "value"


class WatchedTable(Frozen):
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
    preset: PresetName | None = DEFAULT_PRESET
    radius: Radius | None = None
    similarity: Measure | None = None
    threshold: Share | None = None
    term_frequency: TermFrequency | None = None
    min_features: Count | None = None
    sketches: Flag | None = None
    frames: Flag | None = None
    short_threshold: Share | None = None
    long_grams: Flag | None = None
    segmenter: Name | None = None
    normaliser: Normaliser | None = None
    user_words: Words = ()
    stop_words: StopWords | None = None
    stop_word_list: Words | None = None
    exclude_kinds: tuple[ExcludedKind, ...] = ()
    frame_drift: FrameDrift = "rebuild"
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
        for name in ("key", "user_words", "stop_word_list", "exclude_kinds"):
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
            raise ValueError(
                Phrase("without a preset, {missing} must be given", missing=", ".join(sorted(missing)))
            )
        return self

    @model_validator(mode="after")
    def _require_measure_of_kinds(self) -> Self:
        if self.exclude_kinds and self.rule.similarity == NO_SIMILARITY:
            raise ValueError(
                Phrase(
                    "exclude_kinds needs a similarity measure, since without one pairs have no kind: set "
                    'similarity to another value than "{no_similarity}", or leave exclude_kinds out',
                    no_similarity=NO_SIMILARITY,
                )
            )
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

    @property
    def setting(self) -> PairSetting:
        """What decides which pairs are found: the rule, and the kinds of pairs that are left out."""
        return replace(self.rule.setting, exclude_kinds=self.exclude_kinds)

    @property
    def freezes_list(self) -> bool:
        """Whether a scan measures a list on a sample and freezes it with the recipe."""
        return self.rule.frames or self.recipe.has_prefixes

    @property
    def recipe(self) -> Recipe:
        """What decides the features, the fingerprint and the sketch of a row."""
        rule = self.rule
        measure = MEASURES.get(rule.similarity)
        by_length = measure is not None and measure.by_length
        built_in = None if rule.stop_words == "drop" else ()
        return Recipe(
            columns=tuple(RecipeColumn(name, c.kind, c.weight) for name, c in self.columns.items()),
            normaliser=rule.normaliser,
            segmenter=rule.segmenter,
            user_words=self.user_words,
            stop_words=built_in if self.stop_word_list is None else self.stop_word_list,
            term_frequency=rule.term_frequency,
            min_features=rule.min_features,
            sketches=rule.sketches,
            short_threshold=rule.short_threshold if by_length else 0.0,
            long_grams=rule.long_grams and by_length,
            compared_by="words" if measure is None else measure.features,
            names_places=measure is not None,
        )

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
            # In their order: rows are exact duplicates when their columns, one after the other, are equal.
            "columns": [(name, column.model_dump()) for name, column in self.columns.items()],
            "within": [w.model_dump() for w in self.within],
            "where": self.where,
            "order": self.order,
            "segmenter": rule.segmenter,
            "normaliser": rule.normaliser,
            "user_words": self.user_words,
            "stop_words": rule.stop_words if self.stop_word_list is None else self.stop_word_list,
            "term_frequency": rule.term_frequency,
            "min_features": rule.min_features,
            # Keep the former name `bands`: renaming the key would change every stored recipe digest.
            "bands": rule.sketches,
            "frames": rule.frames,
            "short_threshold": self.recipe.short_threshold,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


TABLE_SETTINGS: Final = {f.alias or field for field, f in WatchedTable.model_fields.items()} - {"name"}


def watched_table(name: str, settings: Mapping[str, Any]) -> WatchedTable:
    """Check one table's settings.

    Raises:
        ConfigError: with the table, the place in it and the fault.
    """
    check_known(Phrase("setting of table {name!r}", name=name), settings, TABLE_SETTINGS)
    columns = settings.get("columns")
    for column, spec in columns.items() if isinstance(columns, Mapping) else ():
        if isinstance(spec, Mapping):
            check_known(
                Phrase("setting of column {column!r} of table {name!r}", column=column, name=name),
                spec,
                set(Text.model_fields),
            )
    try:
        watched = WatchedTable.model_validate({"name": name, **settings})
    except ValidationError as error:
        raise ConfigError(
            "table {name!r}: {fault}", name=name, fault=first_fault(error, WatchedTable)
        ) from None
    _check_user_words(watched)
    return watched


def _check_user_words(watched: WatchedTable) -> None:
    """Refuse a line of a user dictionary that begins with what normalising leaves out.

    Its frequency would become the word.
    """
    folded = map(str.split, fold_batch(watched.user_words))
    lines = [(line, words[0]) for line, words in zip(watched.user_words, folded, strict=True) if words]
    for (line, _), word in zip(lines, normalise_batch([word for _, word in lines]), strict=True):
        if not word:
            raise ConfigError(
                "table {name!r}: the line {line!r} of the user dictionary begins with what is left out of "
                "every text, such as a link: remove the line",
                name=watched.name,
                line=line,
            )


def _column_from(spec: Any) -> Any:
    if isinstance(spec, bool):
        return spec
    if isinstance(spec, int):
        return {"kind": "text", "weight": spec}
    if isinstance(spec, Mapping):
        return {"kind": "text", **spec}
    return spec
