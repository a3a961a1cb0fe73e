"""Writes `reference/cli.md` from the commands, and the statements of `reference/grants.md` from the
templates of `db-dedup sql grants`, both in both languages: `make docs`."""

import gettext
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from db_dedup.cli.application import app
from db_dedup.cli.commands import load_commands
from db_dedup.cli.shared.usage import translate_parser_messages
from db_dedup.dialects.grants import Grants
from db_dedup.dialects.mysql import grants as mysql_grants
from db_dedup.dialects.postgresql import grants as postgresql_grants
from db_dedup.records.names import Namespace
from db_dedup.translation import ENGLISH, use_language

PAGE: Final = Path(__file__).parent / "reference" / "cli.md"
CHINESE_PAGE: Final = Path(__file__).parent / "zh-CN" / "reference" / "cli.md"
GRANTS_PAGE: Final = Path(__file__).parent / "reference" / "grants.md"
CHINESE_GRANTS_PAGE: Final = Path(__file__).parent / "zh-CN" / "reference" / "grants.md"
_WIDTH: Final = 100
_INTRODUCTION: Final = """\
# Command line

English · [简体中文](../zh-CN/reference/cli.md)

Written by `make docs` from the commands themselves; each shows the same with `--help`.

Data goes to stdout; messages and progress bars go to stderr, and the bars only where stderr is a terminal.
Every option can also be given by the environment variable that its help names; the option wins.
`db-dedup --version` prints the version, and
`db-dedup --install-completion` has your shell complete commands and options.
What a command returns to the shell: [errors and exit codes](errors.md).

### Language of messages

Messages, help and prompts are in English or Chinese. The language is chosen, in this order, by:

1. `--lang en` or `--lang zh`, before or after the command;
2. the environment variable `DB_DEDUP_LANG`;
3. the locale: `LC_ALL`, `LC_MESSAGES`, `LANG`; on Windows the language in which Windows shows itself.

Data stay as they are: CSV, JSON, the names of views and columns; logs are in English. The
[review console](../how-to/review-console.md) follows the browser. [More](../decisions/0075-gettext.md).
"""
_CHINESE_INTRODUCTION: Final = """\
# 命令行

[English](../../reference/cli.md) · 简体中文

本页由 `make docs` 根据命令本身写出；各命令加上 `--help` 显示同样的内容。

数据写到 stdout；消息和进度条写到 stderr，而且只有 stderr 是终端时才显示进度条。每个选项也可以用其说明中写明的环境变量给出，选项优先。`db-dedup --version` 打印版本，`db-dedup --install-completion` 让 shell 能够补全命令和选项。命令返回给 shell 的值，见[错误和退出码](errors.md)。
### 消息的语言

消息、帮助和提示为英文或中文。语言按以下次序决定：

1. `--lang en` 或 `--lang zh`，写在命令之前或之后；
2. 环境变量 `DB_DEDUP_LANG`；
3. 区域设置：`LC_ALL`、`LC_MESSAGES`、`LANG`；在 Windows 上是 Windows 的显示语言。

数据保持原样：CSV、JSON、视图名和列名；日志为英文。[审阅页面](../how-to/review-console.md)随浏览器的语言。[详情](../../decisions/0075-gettext.md)。
"""  # noqa: E501 - Markdown shows a line break within a Chinese sentence as a blank


def cli_reference() -> str:
    """The whole page."""
    return _page(_INTRODUCTION)


def chinese_cli_reference() -> str:
    """The whole page in Chinese."""
    with _in_chinese():
        return _page(_CHINESE_INTRODUCTION)


@contextmanager
def _in_chinese() -> Iterator[None]:
    """Let commands and parser speak Chinese in the block; a process of the program never changes back."""
    before = gettext.textdomain()
    use_language("zh")
    translate_parser_messages()
    try:
        yield
    finally:
        use_language(ENGLISH)
        os.environ.pop("LANGUAGE")
        gettext.textdomain(before)


def _page(introduction: str) -> str:
    sections = [_section(name, command) for name, command in load_commands().items()]
    return "\n".join([introduction, *sections])


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


_BLOCK: Final = re.compile(r"^```\w+\n.*?^```$", re.MULTILINE | re.DOTALL)


def with_code_of(english: str, page: str) -> str:
    """The translated page with the code blocks of the English one."""
    blocks = iter(_BLOCK.findall(english))
    return _BLOCK.sub(lambda _: next(blocks), page)


if __name__ == "__main__":
    PAGE.write_text(cli_reference(), encoding="utf-8")
    CHINESE_PAGE.write_text(chinese_cli_reference(), encoding="utf-8")
    grants = grants_reference(GRANTS_PAGE.read_text(encoding="utf-8"))
    GRANTS_PAGE.write_text(grants, encoding="utf-8")
    translated = with_code_of(grants, CHINESE_GRANTS_PAGE.read_text(encoding="utf-8"))
    CHINESE_GRANTS_PAGE.write_text(translated, encoding="utf-8")
