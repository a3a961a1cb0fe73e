"""The form in which a watched table's settings are stored, and how older forms are rewritten.

A stored definition is a JSON object that is complete by itself: `format` (the number of its form),
`recipe_version` (RECIPE_VERSION of the code that stored it), and the settings with the whole rule.

Whoever renames, removes or adds a setting raises FORMAT and adds a step to `_STEPS`. The step gives a new
setting the value that means "as before". A released step never changes: migrations call it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from db_dedup.errors import SchemaMissingError

FORMAT: Final = 4

Definition = dict[str, Any]


def definition_text(settings: Mapping[str, Any], recipe_version: int) -> str:
    """Return settings as they are stored, in today's format."""
    return json.dumps({"format": FORMAT, "recipe_version": recipe_version, **settings}, ensure_ascii=False)


def read_definition(text: str, table: str) -> Definition:
    """Return a stored definition of any format in today's format.

    Raises:
        SchemaMissingError: a newer version of the program has stored it.
    """
    document: Definition = json.loads(text)
    if _format(document) > FORMAT:
        raise SchemaMissingError(
            "the settings of {table!r} are stored in format {stored}, "
            "this version of db-dedup knows formats up to {newest}: upgrade db-dedup",
            table=table,
            stored=_format(document),
            newest=FORMAT,
        )
    return rewritten(document, FORMAT)


def rewritten(document: Mapping[str, Any], target: int) -> Definition:
    """Return a definition in a later format; one of the target format or a newer one stays as it is."""
    document = dict(document)
    for number in range(_format(document), target):
        document = {**_STEPS[number](document), "format": number + 1}
    return document


def _format(document: Mapping[str, Any]) -> int:
    return int(document.get("format", 1))


def _resolve_rule(document: Definition) -> Definition:
    """Format 1 named a preset and gave only what differs from it; its recipes were of version 1."""
    preset = _PRESETS_OF_FORMAT_1[document["preset"]]
    rule = {name: value if document[name] is None else document[name] for name, value in preset.items()}
    settings = {name: value for name, value in document.items() if name not in rule}
    return {"format": 2, "recipe_version": 1, **settings, "preset": None, **rule}


def _rename_bands(document: Definition) -> Definition:
    """Format 2 called the setting `sketches` by the name of a part of a sketch: `bands`."""
    return {"sketches" if name == "bands" else name: value for name, value in document.items()}


def _add_settings_of_4(document: Definition) -> Definition:
    """Format 3 had no frames, no kinds of pairs, and one threshold for texts of all lengths."""
    added = {
        "frames": False,
        "short_threshold": 0.0,
        "long_grams": False,
        "exclude_kinds": [],
        "frame_drift": "rebuild",
    }
    return {**document, **added}


_PRESETS_OF_FORMAT_1: Final[Mapping[str, Mapping[str, Any]]] = {
    "strict": {
        "radius": 3,
        "similarity": "none",
        "threshold": 0.0,
        "term_frequency": "raw",
        "stop_words": "drop",
        "min_features": 3,
        "bands": False,
    },
    "balanced": {
        "radius": 3,
        "similarity": "char_overlap",
        "threshold": 0.57,
        "term_frequency": "raw",
        "stop_words": "keep",
        "min_features": 3,
        "bands": True,
    },
}

_STEPS: Final[Mapping[int, Callable[[Definition], Definition]]] = {
    1: _resolve_rule,
    2: _rename_bands,
    3: _add_settings_of_4,
}
"""Format -> what makes the next format of it."""
