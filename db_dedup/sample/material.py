"""The templates of the sentences: one TOML file for each subject, and `common.toml` for all of them."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
Templates = tuple["Template", ...]


def pick(rng: Random, items: Sequence[T]) -> T:
    """Return one of `items`; unlike `choice`, the same one in every Python version."""
    return items[int(rng.random() * len(items))]


def sample(rng: Random, items: Sequence[T], count: int) -> list[T]:
    """Return `count` different items (or all, if there are fewer) in random order."""
    drawn = list(items)
    count = min(count, len(drawn))
    for i in range(count):
        j = i + int(rng.random() * (len(drawn) - i))
        drawn[i], drawn[j] = drawn[j], drawn[i]
    return drawn[:count]


class Template:
    """A sentence with `(one|or|the other)` choices and `{slots}`."""

    __slots__ = ("_choices", "_frame")

    def __init__(self, text: str) -> None:
        """Parse the text; a choice cannot contain another one, but it can contain slots."""
        parts = re.split(r"\(([^()]*)\)", text)
        self._frame = "%s".join(part.replace("%", "%%") for part in parts[::2])
        self._choices = [(part.split("|"), part.count("|") + 1) for part in parts[1::2]]

    def choose(self, rng: Random) -> str:
        """Return the sentence with its choices made and its slots still open."""
        random = rng.random
        return self._frame % tuple([words[int(random() * size)] for words, size in self._choices])


@dataclass(frozen=True, eq=False)
class Subject:
    """A subject of petitions.

    Attributes:
        pools: part of a petition (titles, openings, facts, ...) -> its templates.
        words: slot -> the templates that fill it.
        places: the slots that name a place.
    """

    name: str
    pools: Mapping[str, Templates]
    words: Mapping[str, Templates]
    places: frozenset[str]


@cache
def load_subjects() -> tuple[Subject, ...]:
    """Return all subjects, each with the common templates added, in the order of their files."""
    folder = files(__package__)
    common = _read(folder / "common.toml")
    paths = sorted((folder / "subjects").iterdir(), key=lambda path: path.name)
    return tuple(_subject(common, _read(path)) for path in paths if path.name.endswith(".toml"))


def _subject(common: dict[str, Any], own: dict[str, Any]) -> Subject:
    words = common["words"] | own["words"]
    pools = {pool: lines for pool, lines in (common | own).items() if isinstance(lines, list)}
    return Subject(
        name=own["name"],
        pools={pool: tuple(map(Template, lines)) for pool, lines in pools.items()},
        words={slot: tuple(map(Template, lines)) for slot, lines in words.items()},
        places=frozenset(slot for slot, lines in words.items() if "{place}" in "".join(lines)) | {"place"},
    )


def _read(path: Traversable) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
