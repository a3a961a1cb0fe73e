"""Messages in the language of the reader, through gettext; one place chooses the language.

A message is a template with named fields. English is the language of the templates, so that no catalogue is
read for it. `tr` translates at once; a `Phrase` is made where the reader is not known: it is a text in
English, in JSON and logs too, and the code that shows it to a person translates it then.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

if TYPE_CHECKING:
    from gettext import NullTranslations

DOMAIN: Final = "db_dedup"
CONSOLE: Final = "console"
"""The context of the words of the console in the catalogue, before the key."""
RULE: Final = "rule"
STATUS: Final = "status"
SORT: Final = "sort"
"""Contexts of names of the program that people read: of tests, of fields, of what two texts name."""
ENGLISH: Final = "en"
"""The language of the templates."""
LOCALES: Final[Mapping[str, str]] = {"zh": "zh_CN"}
"""Language -> the name of its catalogue."""
LANGUAGES: Final = (ENGLISH, *LOCALES)
"""What can be chosen."""
VARIABLE: Final = "DB_DEDUP_LANG"
_OF_THE_SYSTEM: Final = ("LC_ALL", "LC_MESSAGES", "LANG")
_CHINESE_ON_WINDOWS: Final = 0x04
"""The primary language of the identifiers of Windows, in their lower 10 bits."""

_chosen: list[str] = [ENGLISH]
"""The one language of this process. A context variable would not reach the threads of `run`."""
_is_for_programs: ContextVar[bool] = ContextVar("is_for_programs", default=False)

_PROGRAM: Final = "db-dedup "
_IS_A_WORD: Final = re.compile(r"[\w@%+=:,./-]+")
"""Ideographs, too, unlike in `shlex`."""

_T = TypeVar("_T")


class Translatable:
    """Has a text in each language."""

    __slots__ = ()

    def in_language(self, language: str) -> str:
        """Return the text in a language, one of `LANGUAGES`."""
        raise NotImplementedError


class Phrase(str, Translatable):
    """A text in English that can be translated later.

    Attributes:
        template: without its values: what the translation is looked up by.
        fields: the values by their names in the template.
        plural: the template where the field `amount` is not 1, if there is another.
    """

    template: str
    fields: Mapping[str, Any]
    plural: str | None

    def __new__(cls, template: str, plural: str | None = None, /, **fields: Any) -> Self:
        """Fill in the English text; without fields it is taken as it is, braces included."""
        english = template if plural is None or fields["amount"] == 1 else plural
        made = super().__new__(cls, formatted(english, fields) if fields else english)
        made.template, made.fields, made.plural = template, fields, plural
        return made

    def in_language(self, language: str) -> str:
        """Return the text in a language."""
        if language == ENGLISH:
            return str(self)
        if self.plural is None:
            return filled(lookup(self.template, language), self.fields, language)
        template = catalogue(language).ngettext(self.template, self.plural, self.fields["amount"])
        return filled(template, self.fields, language)


def tr(template: str, /, **fields: object) -> str:
    """Return a message in the language of this process.

    Args:
        template: the message in English, for `str.format`. Without fields it is taken as it is.
        fields: the values by their names in the template; those that are `Translatable` are translated, too.
    """
    if isinstance(template, Translatable):
        return template.in_language(language())
    return filled(lookup(template, language()), fields, language())


def lookup(template: str, language: str) -> str:
    """Return the template in a language; the template itself if the catalogue does not have it."""
    if language == ENGLISH or not template:  # gettext keeps the head of the catalogue under ""
        return template
    return catalogue(language).gettext(template)


def named(context: str, word: str, language: str) -> str:
    """Return a word that is translated one way in this context, such as the name of a field."""
    return word if language == ENGLISH else catalogue(language).pgettext(context, word)


def filled(template: str, fields: Mapping[str, object], language: str) -> str:
    """Return a template with its fields, which are translated where they can be."""
    if not fields:
        return template
    shown = {
        name: said.in_language(language) if isinstance(said := said_by(value), Translatable) else value
        for name, value in fields.items()
    }
    return formatted(template, shown)


def formatted(template: str, fields: Mapping[str, object]) -> str:
    """Return a template with its fields; a value in a command between backticks is one word of a shell."""
    parts = template.split("`")
    commands = parts[1::2]
    if not any(command.startswith(_PROGRAM) and "{" in command for command in commands):
        return template.format(**fields)
    words = {name: _shell_word(str(value)) for name, value in fields.items()}
    parts[::2] = [part.format(**fields) for part in parts[::2]]
    parts[1::2] = [part.format(**(words if part.startswith(_PROGRAM) else fields)) for part in commands]
    return "`".join(parts)


def _shell_word(text: str) -> str:
    """Return a text as one word of the shell of this system; most names are one as they are."""
    if _IS_A_WORD.fullmatch(text):
        return text
    if sys.platform == "win32":
        from subprocess import list2cmdline  # noqa: PLC0415 - a start does without

        return list2cmdline([text])
    return shlex.quote(text)


def said_by(value: object) -> object:
    """Return the value, or of an error of Python the phrase that it was raised with."""
    if isinstance(value, ValueError) and not isinstance(value, Translatable) and len(value.args) == 1:
        return value.args[0]
    return value


def joined(separator: str, parts: Iterable[object]) -> Phrase:
    """Return parts on one line; each is translated where it can be, and so is the separator."""
    fields = {f"part_{number}": part for number, part in enumerate(parts)}
    template = "{separator}".join(f"{{{name}}}" for name in fields)
    return Phrase(template, separator=Phrase(separator), **fields)


@lru_cache
def catalogue(language: str) -> "NullTranslations":
    """Read the catalogue of a language other than English."""
    # English, and a start, do without.
    from gettext import translation  # noqa: PLC0415

    return translation(DOMAIN, folder(), [LOCALES[language]])


def folder() -> str:
    """Return the folder of the catalogues."""
    return os.path.join(os.path.dirname(__file__), "locale")  # noqa: PTH118, PTH120 - a start without pathlib


def language() -> str:
    """Return the language of this process; English within `in_english`."""
    return ENGLISH if _is_for_programs.get() else _chosen[0]


def in_english(make: Callable[[], _T]) -> _T:
    """Return what a function makes in this thread in English, for programs: the API has one language."""
    token = _is_for_programs.set(True)
    try:
        return make()
    finally:
        _is_for_programs.reset(token)


def tag(name: str | None = None) -> str:
    """Return how HTML names a language, or that of this process if it is left out."""
    return LOCALES.get(name or language(), ENGLISH).replace("_", "-")


def use_language(name: str) -> None:
    """Set the language of this process, one of `LANGUAGES`. Only a program as a whole chooses it."""
    _chosen[0] = name


def language_of_environment(environment: Mapping[str, str] = os.environ) -> str:
    """Return the language that the reader has set: `DB_DEDUP_LANG`, else the locale, else English."""
    if environment.get(VARIABLE) in LANGUAGES:
        return environment[VARIABLE]
    locale = next((environment[name] for name in _OF_THE_SYSTEM if environment.get(name)), None)
    is_chinese = _is_windows_chinese() if locale is None else locale.casefold().startswith("zh")
    return "zh" if is_chinese else ENGLISH


def _is_windows_chinese() -> bool:
    """Return whether Windows shows itself in Chinese; it sets no variable for the locale."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415

        return bool(ctypes.windll.kernel32.GetUserDefaultUILanguage() & 0x3FF == _CHINESE_ON_WINDOWS)
    return False
