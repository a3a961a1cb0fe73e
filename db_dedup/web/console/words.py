"""The words of the pages in each language, and which language a reader wants."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from db_dedup.present.visible import visible
from db_dedup.translation import CONSOLE, LANGUAGES, named, tag


@lru_cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return key -> words of a language."""
    text = files("db_dedup.web.console").joinpath("words.toml").read_text(encoding="utf-8")
    sections: dict[str, dict[str, str]] = tomllib.loads(text)
    return {
        key: named(f"{CONSOLE} {key}", words, language)
        for section, keys in sections.items()
        for key, words in ((f"{section}.{name}", words) for name, words in keys.items())
    }


class Words:
    """The words of one language: call it with a key and the values of its fields."""

    def __init__(self, language: str) -> None:
        self.language, self.tag = language, tag(language)
        self._words = catalogue(language)

    def __call__(self, key: str, /, **fields: object) -> str:
        """Return the words of a key; what would change the direction of writing is shown as an escape."""
        safe = {name: visible(value) if isinstance(value, str) else value for name, value in fields.items()}
        return self._words[key].format(**safe)

    def name(self, section: str, name: str) -> str:
        """Return the words for a name of the program, such as a measure; the name itself if it has none."""
        return self._words.get(f"{section}.{name}", name)

    @property
    def other(self) -> str:
        """The other language, for a link to it."""
        return next(name for name in LANGUAGES if name != self.language)

    @property
    def other_tag(self) -> str:
        """How HTML names the other language."""
        return tag(self.other)


def choose_language(chosen: str | None, accepted: str) -> str:
    """Return the language of a reader.

    Args:
        chosen: what a link was followed for; None if none was.
        accepted: the header Accept-Language.
    """
    if chosen in LANGUAGES:
        return str(chosen)
    wanted: list[tuple[float, str]] = []
    for part in accepted[:500].split(","):
        tag, _, quality = part.partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        name = tag.strip().casefold().partition("-")[0]
        if name in LANGUAGES and weight > 0:
            wanted.append((-weight, name))
    return min(wanted, key=lambda one: one[0])[1] if wanted else LANGUAGES[0]
