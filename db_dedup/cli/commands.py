"""All commands by name, each imported when it is run: `--help` shows their names and lines without it."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from db_dedup.cli.shared import interrupts
from db_dedup.cli.shared.usage import translate_help, usage_faults, with_translated_help
from db_dedup.translation import tr

# ruff: noqa: E501 - the list is easier to read with a command a line
COMMANDS: Final[Mapping[str, str]] = {
    "file": "Find the duplicates in FILE and show them side by side; the file itself is only read.",
    "demo": "Make some thousands of petitions in a SQLite file, find their duplicates and show some.",
    "init": "Inspect a database and write a settings file: key, order column and the columns of texts.",
    "upgrade": "Make our tables and views in the database, or bring them up to date.",
    "scan": "Find every duplicate of TABLE and switch the views to the new answer.",
    "pairs": "Print the duplicate pairs of TABLE, the earlier-received row first.",
    "groups": "Print the duplicate groups of TABLE, the largest first.",
    "history": "Print what has become of the group of TABLE that had the id ID, or the latest changes of all ids.",
    "export": "Write the rows of TABLE with their groups to a CSV, Excel or Parquet file, or to stdout.",
    "explain": "Explain why rows A and B of TABLE are a duplicate pair, or why not, by the rule of the last scan.",
    "label": "Offer pairs of TABLE that tell most about the rule, and remember whether they are duplicates.",
    "calibrate": "Judge the settings of TABLE by labelled pairs, and propose others where the labels support them.",
    "compare": "Compare segmenters, features and methods of five papers, and our rules, on labelled pairs.",
    "check": "Print the stored rows of TABLE that a record duplicates, nearest first.",
    "attach": "Make triggers on TABLE that queue its changes, or repair dropped, disabled or altered ones.",
    "detach": "Drop our triggers on TABLE and forget its queue; the answer stays as it is.",
    "worker": "Handle the changes that the triggers queue, until stopped; SIGTERM or Ctrl-C finish the batch first.",
    "retry": "Queue the dead changes of TABLE once more, after their cause was mended.",
    "schedule": "Scan the tables from time to time, until stopped, and say what each scan changed.",
    "serve": "Serve checks, pairs, groups and labels over HTTP, until stopped.",
    "run": "Run worker, schedule and HTTP service in one process, as the settings file says, until stopped.",
    "status": "Show the state of each watched table: answer, queue, triggers, last scans.",
    "verify": "Compare the answer with a fresh full scan, and view and triggers with what was made.",
    "report": "Write the duplicates of TABLE in figures and plots as a page of HTML that needs no other file.",
    "sql": "Print the SQL that a command would run.",
    "uninstall": "Drop every table, view and trigger of ours; the user's rows are not touched.",
}  # fmt: skip
"""Name -> first line of the docstring, in the order of `--help`. A command is the function of its name in
`db_dedup.cli.<name>`."""


class Command(TyperCommand):
    """A command whose option --help speaks the language of the reader."""

    def format_help(self, *where: Any) -> None:
        """Print the help, in which long words are folded."""
        _fold_help()
        super().format_help(*where)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option --help."""
        return with_translated_help(super().get_help_option(ctx))


class LazyGroup(TyperGroup):
    """Lists the commands by the table above; imports the one that runs."""

    def __init__(self, **settings: Any) -> None:
        """Fill the list."""
        super().__init__(**settings)
        for name, line in COMMANDS.items():
            self.add_command(TyperCommand(name, help=tr(line)))
        translate_help(self)

    def get_params(self, ctx: Any) -> Any:
        """Return the options; the parser adds those of shell completion after the group is made."""
        return [with_translated_help(option) for option in super().get_params(ctx)]

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Parse what comes before the command."""
        with usage_faults():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Parse the options of the command, and run it."""
        with usage_faults():
            return super().invoke(ctx)

    def format_help(self, *where: Any) -> None:
        """Print the help, in which long words are folded."""
        _fold_help()
        super().format_help(*where)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option --help."""
        return with_translated_help(super().get_help_option(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and remaining arguments; also shell completion asks this for options."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else command, rest


def _fold_help() -> None:
    from db_dedup.cli.shared.folded_help import fold_help  # noqa: PLC0415 - imported when help is printed

    fold_help()


def load_command(name: str) -> Any:
    """Import one command. A signal meanwhile ends the process, as during all imports of the start."""
    with interrupts.leaving_at_once():
        module = import_module(f"db_dedup.cli.{name}")
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=Command)(getattr(module, name))
    command = get_command(alone)
    translate_help(command)
    return command


def load_commands() -> dict[str, Any]:
    """Import all commands."""
    return {name: load_command(name) for name in COMMANDS}
