"""What the parser of the command line says, in the language of the reader.

The parser translates some of its words by gettext itself; faults of usage it writes in English only. They are
recognised by their forms, which are messages of our catalogue.
"""

import gettext
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from db_dedup.translation import DOMAIN, LOCALES, Phrase, folder, language, tr

LANGUAGE_OPTION: Final = "--lang"
_FORMS: Final = (
    Phrase("Missing argument {name}."),
    Phrase("Missing option {name}."),
    Phrase("No such option: {name} (Possible options: {names})"),
    Phrase("No such option: {name}"),
    Phrase("No such command {name}."),
    Phrase("Invalid value for {name}: {fault}"),
    Phrase("Invalid value: {fault}"),
    Phrase("Got unexpected extra argument(s) ({names})"),
    Phrase("Option {name} requires an argument."),
    Phrase("Option {name} requires {count} arguments."),
    Phrase("Option {name} does not take a value."),
    Phrase("{value} is not one of {values}."),
    Phrase("{value} is not a valid {kind}."),
    Phrase("{value} is not in the range {range}."),
    Phrase("File {name} does not exist."),
    Phrase("File {name} is a directory."),
    Phrase("Directory {name} is a file."),
    Phrase("Directory {name} does not exist."),
    Phrase("{fault}. Did you mean {names}?"),
    Phrase("Input should be a valid integer, unable to parse string as an integer"),
    Phrase("Input should be a valid number, unable to parse string as a number"),
    Phrase("Input should be greater than or equal to {limit}"),
    Phrase("Input should be less than or equal to {limit}"),
    Phrase("{name} (env var: {variable})"),
)
_OF_VALIDATORS: Final = "Value error, "
"""What the parser's library writes before some faults."""
_NESTED: Final = ("fault", "name")
"""Fields that are such a message, too."""
_FIELD: Final = re.compile(r"\\\{(\w+)\\\}")


def language_first(arguments: list[str]) -> list[str]:
    """Return the arguments, the option for the language before the command, wherever it was given."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    chosen: list[str] = []
    rest: list[str] = []
    given = iter(arguments[:end])
    for argument in given:
        if argument == LANGUAGE_OPTION:
            value = next(given, None)
            if value is None:
                return [argument]  # the parser says what is missing
            chosen = [argument, value]
        elif argument.startswith(f"{LANGUAGE_OPTION}="):
            chosen = argument.split("=", 1)
        else:
            rest.append(argument)
    return [*chosen, *rest, *arguments[end:]]


def translate_parser_messages() -> None:
    """Have the parser of the command line look up its messages in our catalogue, too."""
    if language() in LOCALES:
        os.environ["LANGUAGE"] = LOCALES[language()]  # where gettext looks for the language first
        gettext.bindtextdomain(DOMAIN, folder())
        gettext.textdomain(DOMAIN)


def translate_help(command: Any) -> None:
    """Translate the help of a command and of its options, in place."""
    for item in (command, *command.params):
        with_translated_help(item)


def with_translated_help(item: Any) -> Any:
    """Return a command or an option, its help translated in place."""
    if language() in LOCALES and getattr(item, "help", None):
        item.help = "\n\n".join(tr(" ".join(part.split())) for part in item.help.split("\n\n"))
    return item


@contextmanager
def usage_faults() -> Iterator[None]:
    """Report a fault of usage that the parser finds in the block in the words of `translated_fault`."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):
            vars(error)["format_message"] = partial(translated_fault, error.format_message())
        raise


def translated_fault(message: str) -> str:
    """Return what the parser says, translated as far as its forms are known, without the library's prefix."""
    message = message.removeprefix(_OF_VALIDATORS)
    for form in _FORMS:
        pattern = _FIELD.sub(r"(?P<\1>.+)", re.escape(form))
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return tr(form.template, **_translated_fields(found.groupdict()))
    return message


def _translated_fields(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: translated_fault(value) if name in _NESTED else value for name, value in fields.items()}
