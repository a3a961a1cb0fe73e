"""Writes `reference/cli.md` from the commands, and the statements of `reference/grants.md` from
the templates of `db-dedup sql grants`: `make docs`."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from db_dedup.cli.application import app
from db_dedup.cli.commands import load_commands
from db_dedup.dialects.grants import Grants
from db_dedup.dialects.mysql import grants as mysql_grants
from db_dedup.dialects.postgresql import grants as postgresql_grants
from db_dedup.records.names import Namespace

PAGE: Final = Path(__file__).parent / "reference" / "cli.md"
GRANTS_PAGE: Final = Path(__file__).parent / "reference" / "grants.md"
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
    sections = [_section(name, command) for name, command in load_commands().items()]
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


def _postgresql_script(part: str) -> str:
    wanted = Grants(Namespace("dedup", ""), "petitions", None, "duplicates_of_petitions", {}, [part])
    return postgresql_grants.script(wanted, "petitions_owner")


def _mysql_script(part: str) -> str:
    view = "dedup_duplicates_of_petitions"
    wanted = Grants(Namespace(None, "dedup_"), "petitions", None, view, {}, [part])
    return mysql_grants.script(wanted, "office")


_SCRIPTS: Final[Mapping[str, Callable[[str], str]]] = {
    "PostgreSQL": _postgresql_script,
    "MariaDB and MySQL": _mysql_script,
}
_PART: Final = re.compile(
    r"(^### The (owner|scanner|attacher|clerk|reader)$.*?^```sql\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL
)


def grants_reference(page: str) -> str:
    """The page with the statements of each part as the command prints them, without the comments."""
    sections = re.split(r"(?m)^(?=## )", page)
    return "".join(_with_statements(section) for section in sections)


def _with_statements(section: str) -> str:
    script = _SCRIPTS.get(section.partition("\n")[0].removeprefix("## "))
    if script is None:
        return section

    def statements(part: re.Match[str]) -> str:
        lines = script(part[2]).splitlines(keepends=True)
        return part[1] + "".join(line for line in lines if not line.startswith("--")) + part[4]

    return _PART.sub(statements, section)


if __name__ == "__main__":
    PAGE.write_text(cli_reference(), encoding="utf-8")
    page = GRANTS_PAGE.read_text(encoding="utf-8")
    GRANTS_PAGE.write_text(grants_reference(page), encoding="utf-8")
