"""Writes `reference/cli.md` from the command line itself: `make docs`."""

from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from db_dedup.cli.application import app

PAGE: Final = Path(__file__).parent / "reference" / "cli.md"
_WIDTH: Final = 100
_INTRODUCTION: Final = """\
# Command line

Written by `make docs` from the commands themselves; each shows the same with `--help`.

Data goes to stdout; messages and progress bars go to stderr, and the bars only where stderr is a terminal.
Every option can also be given by the environment variable that its help names; the option wins.
`db-dedup --version` prints the version.
What a command returns to the shell: [errors and exit codes](errors.md).
"""


def cli_reference() -> str:
    """The whole page."""
    group: Any = get_command(app)
    sections = [_section(name, command) for name, command in group.commands.items()]
    return "\n".join([_INTRODUCTION, *sections])


def _section(name: str, command: Any) -> str:
    command.rich_markup_mode = None  # plain text, without boxes
    context = command.context_class(
        command,
        info_name=f"db-dedup {name}",
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        **(app.info.context_settings or {}),
    )
    return f"## {name}\n\n```text\n{command.get_help(context).strip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(cli_reference(), encoding="utf-8")
