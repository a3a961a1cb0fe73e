"""The differences between two settings of one table, in words for people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from db_dedup.config import WatchedTable
from db_dedup.translation import Phrase, joined

_LONGEST: Final = 60
"""The most characters of a value that are shown."""
_NAME_IN_FILE: Final[Mapping[str, str]] = {
    "user_words": "user_dictionary",
    "stop_word_list": "stop_words_file",
}
"""Settings for which `dedup.toml` names a file of words."""
_MISSING: Final = object()


def setting_differences(stored: WatchedTable, given: WatchedTable) -> str:
    """Return the names of the settings that differ, with the stored and the given value; "" if none differs.

    Args:
        stored: the settings of the last scan.
        given: the settings of the same table by the file or the caller.
    """
    before, now = _settings(stored), _settings(given)
    return joined(", ", _differences(before, now))


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, _MISSING), now.get(name, _MISSING)
        if old != new:
            yield Phrase(
                "{name} (stored: {old}, given: {new})",
                name=_NAME_IN_FILE.get(name, name),
                old=_shown(name, old),
                new=_shown(name, new),
            )


def _settings(watched: WatchedTable) -> dict[str, Any]:
    """Return setting -> value; the settings of a column have names that begin with `columns.<name>`."""
    settings = watched.resolved().model_dump(mode="json", by_alias=True, exclude={"name", "preset"})
    columns = settings.pop("columns")
    for column, spec in columns.items():
        settings |= {f"columns.{column}.{field}": value for field, value in spec.items()}
    return settings


def _shown(name: str, value: Any) -> str:
    if value is _MISSING or value is None:
        return Phrase("none")
    if name in _NAME_IN_FILE:
        return Phrase("{count:,} words, not the same ones", count=len(value)) if value else Phrase("none")
    text = _plain(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain(value: Any) -> str:
    """Return a value in a short form of its spelling in `dedup.toml`."""
    match value:
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return joined(", ", map(_plain, value)) or Phrase("none")
        case dict():
            return " by ".join(str(part) for part in value.values() if part != "value")
    return str(value)
