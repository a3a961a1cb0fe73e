"""`python -m translations`: bring the catalogues up to date with the code, and compile them."""

import sys
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from db_dedup.translation import DOMAIN, LOCALES, folder
from translations.extract import all_messages

_WIDTH: Final = 110
_HEAD: Final = "# Written by `make messages`. Glossary: docs/zh-CN/README.md."


def template() -> Catalog:
    """Return a catalogue of all messages of the code, none of them translated."""
    found = Catalog(domain=DOMAIN, fuzzy=False)
    for message in all_messages():
        found.add(message.message, locations=[(message.file, 0)], context=message.context)
    return found


def catalogue_file(locale: str) -> Path:
    """Return the file of a catalogue that people edit; the compiled one is beside it."""
    return Path(folder()) / locale / "LC_MESSAGES" / f"{DOMAIN}.po"


def read(locale: str) -> Catalog:
    """Return a catalogue as it is in its file."""
    with catalogue_file(locale).open("rb") as file:
        return read_po(file, locale, DOMAIN)


def compile_file(path: Path, catalogue: Catalog) -> None:
    """Write the compiled catalogue, the same bytes for the same messages."""
    with path.open("wb") as file:
        write_mo(file, catalogue)


def main() -> None:
    """Update and compile each catalogue; new messages are added without a translation."""
    messages = template()
    for locale in LOCALES.values():
        path = catalogue_file(locale)
        catalogue = read(locale)
        catalogue.update(messages, no_fuzzy_matching=True, update_creation_date=False)
        catalogue.obsolete.clear()
        catalogue.header_comment = _HEAD
        catalogue.last_translator = catalogue.language_team = catalogue.msgid_bugs_address = catalogue.project
        with path.open("wb") as file:
            write_po(file, catalogue, width=_WIDTH, include_lineno=False)
        compile_file(path.with_suffix(".mo"), catalogue)
        missing = sum(bool(message.id) and not all_translated(message.string) for message in catalogue)
        sys.stdout.write(f"{path}: {len(catalogue)} messages, {missing} of them not translated\n")


def all_translated(string: str | tuple[str, ...] | list[str] | None) -> bool:
    """Return whether a translation has all its forms."""
    return all(string) if isinstance(string, tuple | list) else bool(string)


if __name__ == "__main__":
    main()
