"""The command line as a whole, and how its errors are reported."""

import logging
import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Annotated

import typer

from db_dedup import __version__
from db_dedup.cli.commands import LazyGroup
from db_dedup.cli.shared.interrupts import interruption_first
from db_dedup.cli.shared.terminal import open_missing_streams, replace_what_cannot_be_shown, say
from db_dedup.cli.shared.usage import LANGUAGE_OPTION, language_first, translate_parser_messages
from db_dedup.errors import DedupError
from db_dedup.light_imports import leave_out_blas
from db_dedup.progress import when_compiling
from db_dedup.translation import LANGUAGES, VARIABLE, Phrase, language_of_environment, tr, use_language

_URL_OPTIONS = ("--url", "--store-url")
_COMPILING = Phrase("compiling what this command needs, only this once; it can take up to a minute")
_COMPILING_AGAIN = Phrase(
    "compiling what this command needs; it can take up to a minute, each time, because there is no folder to "
    "keep the result in: set NUMBA_CACHE_DIR to a folder that this account can write"
)
_URL_WITH_PASSWORD = re.compile(r"[\w+]+://[^/@:]*:.*@", re.DOTALL)
_OPTION_WITH_URL = re.compile(rf"({'|'.join(_URL_OPTIONS)})=[\w+]+://")

app = typer.Typer(
    name="db-dedup",
    cls=LazyGroup,
    help="Finds near-duplicate rows in relational tables and keeps the answer as SQL views.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Language(StrEnum):
    """What messages can be written in."""

    ENGLISH = "en"
    CHINESE = "zh"


def _print_version(is_asked_for: bool) -> None:
    """Print name and version on stdout, and end."""
    if is_asked_for:
        typer.echo(f"db-dedup {__version__}")
        raise typer.Exit


@app.callback()
def options_of_all_commands(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
    lang: Annotated[
        Language | None,
        typer.Option(
            LANGUAGE_OPTION,
            envvar=VARIABLE,
            help="The language of messages, before or after the command. Left out, that of the locale.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Take the options that come before a command."""
    del version  # its callback has ended the program
    if lang is not None:
        use_language(lang.value)


def _refuse_stray_passwords(arguments: Sequence[str]) -> None:
    """Refuse a URL that is not the value of a URL option: other errors would print its password."""
    for before, argument in pairwise(["", *arguments]):
        is_in_place = before in _URL_OPTIONS or _OPTION_WITH_URL.match(argument)
        if _URL_WITH_PASSWORD.search(argument) and not is_in_place:
            say("error: a database URL goes after {options}", options=tr(" or ").join(_URL_OPTIONS))
            sys.exit(2)


def choose_language() -> None:
    """Choose the language before anything is parsed, so that also help and faults of usage are in it."""
    sys.argv[1:] = language_first(sys.argv[1:])
    given = sys.argv[2] if sys.argv[1:2] == [LANGUAGE_OPTION] and len(sys.argv) > 2 else None
    use_language(given if given in LANGUAGES else language_of_environment())
    if sys.argv[1:] == [LANGUAGE_OPTION, given]:
        del sys.argv[1:]  # without a command there is the help
    translate_parser_messages()


def run() -> None:
    """Run the command line; every error of ours is one line on stderr."""
    open_missing_streams()
    replace_what_cannot_be_shown()
    choose_language()
    leave_out_blas()
    when_compiling(lambda is_kept: say(_COMPILING if is_kept else _COMPILING_AGAIN))
    # SQLAlchemy logs a lost connection and raises an exception, which is reported: the log would repeat it.
    logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())
    try:
        try:
            _refuse_stray_passwords(sys.argv[1:])
            with interruption_first():
                app()
        finally:
            sys.stdout.flush()
    except DedupError as error:
        say("error: {error}", error=error)
        sys.exit(error.exit_code)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader of our output closed it, as `| head` does
            fault = DedupError(
                "cannot use {file}: {reason}",
                file=error.filename or Phrase("the output"),
                reason=error.strerror,
            )
            say("error: {fault}", fault=fault)
        # Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
