"""The GRANT statements of each account: a template of the dialect's with the names filled in."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from sqlalchemy import make_url
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import IdentifierPreparer

from db_dedup.records.names import Namespace


class AccountRole(StrEnum):
    """What an account is for; the statements have a part for each role."""

    OWNER = "owner"
    SCANNER = "scanner"
    ATTACHER = "attacher"
    CLERK = "clerk"
    READER = "reader"


ACCOUNT_ROLES: Final = tuple(role.value for role in AccountRole)
TABLE_OWNER: Final = "table_owner"
"""On PostgreSQL also a name in the statements: of the role that owns the user's table."""
_DEFAULT_ACCOUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {role: f"dedup_{role}" for role in ACCOUNT_ROLES}
)

_PART: Final = re.compile(r"^-- The (\w+):")
_OF_ANOTHER_SCHEMA: Final = "{table_schema}"


@dataclass(frozen=True)
class Grants:
    """What the statements are about.

    Attributes:
        namespace: where our tables are.
        table: the user's table.
        table_schema: its schema or database, where the settings name one.
        view: our view of its rows, without its schema.
        accounts: role -> account, and `TABLE_OWNER` -> PostgreSQL role; a role without one has its default
            account.
        parts: the roles whose parts are written.
    """

    namespace: Namespace
    table: str
    table_schema: str | None
    view: str
    accounts: Mapping[str, str]
    parts: Iterable[str] = ACCOUNT_ROLES

    def account(self, role: str) -> str:
        """Return the account that has a role."""
        return self.accounts.get(role) or _DEFAULT_ACCOUNTS[role]


class QuotedNames(dict[str, str]):
    """Any name of a table, view or sequence of ours -> how a statement writes it."""

    def __init__(self, write: Callable[[str], str]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, name: str) -> str:
        """Write it."""
        return self._write(name)


def script_preparer(name: str) -> IdentifierPreparer:
    """Return what quotes names for a script: a driver wants a percent sign twice, a script has it once."""
    kind = cast(type[DefaultDialect], make_url(f"{name}://").get_dialect())
    return kind(paramstyle="named").identifier_preparer


def fill(template: Path, parts: Iterable[str], names: Mapping[str, object]) -> str:
    """Return the statements of these parts, each part with the comment that says what it is for.

    Args:
        template: the dialect's file.
        parts: which ones, in any order.
        names: what goes into the braces of the template, quoted; without `table_schema` the lines that
            need it are left out.
    """
    wanted = set(parts)
    chosen = [lines for part, lines in _sections(template.read_text(encoding="utf-8")) if part in wanted]
    return "\n".join(
        "".join(line.format_map(names) for line in lines if _is_needed(line, names)) for lines in chosen
    )


def _is_needed(line: str, names: Mapping[str, object]) -> bool:
    return _OF_ANOTHER_SCHEMA not in line or bool(names.get("table_schema"))


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each part with its lines, without blank ones."""
    part, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        if begins := _PART.match(line):
            if lines:
                yield part, lines
            part, lines = begins[1], []
        if line.strip():
            lines.append(line)
    yield part, lines
