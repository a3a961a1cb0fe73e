"""Error messages for settings: which setting, its value, and what it takes."""

import json
from collections.abc import Iterator, Sequence
from datetime import date, time
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from db_dedup.translation import Phrase, Translatable, joined, said_by

_LONGEST_VALUE: Final = 60
"""Characters of a value that are shown."""


def first_fault(error: ValidationError, model: type[BaseModel]) -> str:
    """Describe the first fault that validation found.

    Args:
        error: of the validation.
        model: that was validated. The description of a field, or of its type, says what it takes.
    """
    found = error.errors()[0]
    place, taken = _described(found["loc"], model)
    match found["type"]:
        case "value_error":
            return _of_validator(found["ctx"]["error"])
        case "missing":
            fault = Phrase("{place} is missing; it takes {taken}", place=place, taken=taken)
        case "extra_forbidden":
            fault = Phrase("there is no setting {place}", place=place)
        case _:
            fault = Phrase(
                "{place} = {value}: it takes {taken}", place=place, value=_shown(found["input"]), taken=taken
            )
    return fault


def _of_validator(error: object) -> str:
    """Return what one of our validators says, on one line: the names in it are the user's."""
    said = said_by(error)
    return Phrase("{fault}", fault=said) if isinstance(said, Translatable) else " ".join(str(said).split())


def _described(loc: Sequence[str | int], model: type[BaseModel]) -> tuple[str, str]:
    """Return the place of a setting as the user knows it, and what it takes."""
    place: list[str] = []
    descriptions: list[str] = [Phrase("other settings")]
    models, is_item = [model], False
    for number, step in enumerate(loc, 1):
        field = None if is_item else _field(models, step)
        if field is not None:
            parts = [field, *_parts(field.annotation)]
            models = [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]
            descriptions = [*filter(None, map(_description, parts))] or descriptions
            is_item = any(get_origin(part) in (dict, tuple) for part in parts)
        elif is_item:  # the innermost type of a list or of a section is that of its items
            descriptions, is_item = descriptions[-1:], False
        elif number < len(loc):
            continue  # the kind for which a column was taken
        place.append(str(step))
    return " ".join(".".join(place).split()), descriptions[0]


def _field(models: Sequence[type[BaseModel]], name: str | int) -> FieldInfo | None:
    fields = (pair for model in models for pair in model.model_fields.items())
    return next((field for own, field in fields if name in (own, field.alias)), None)


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield a type and all types that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _description(part: Any) -> str | None:
    if isinstance(part, FieldInfo):
        return None if part.description is None else Phrase(part.description)
    values = [value for value in get_args(part) if isinstance(value, str)]
    return joined(" or ", map(_shown, values)) if values else None


def _shown(value: Any) -> str:
    """Return a value much as TOML writes it."""

    def named(other: object) -> str:
        return str(other) if isinstance(other, date | time) else f"a {type(other).__name__}"

    text = json.dumps(value, ensure_ascii=False, skipkeys=True, default=named)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
