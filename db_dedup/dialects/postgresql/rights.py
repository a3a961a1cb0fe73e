"""Which GRANT is missing, by PostgreSQL's message and the statement that it refused."""

import re
from collections.abc import Mapping
from typing import Final

from db_dedup.translation import Phrase

_DENIED: Final = re.compile(r"permission denied for (?:materialized )?(\w+) (.+)")
_NAMES_A_TABLE: Final = re.compile(r"\b(?:INTO|COPY|UPDATE|FROM)\s+", re.IGNORECASE)
_LOCKS: Final = re.compile(r"\bFOR (?:(?:NO KEY )?UPDATE|SHARE)\b", re.IGNORECASE)
_RIGHTS_OF_TARGET: Final[Mapping[str, str]] = {
    "INSERT": "INSERT",
    "COPY": "INSERT",
    "UPDATE": "SELECT, UPDATE",  # it finds its rows by their columns, as ours all do
    "DELETE": "SELECT, DELETE",
}


def needed_grant(message: str, statement: str) -> str:
    """Return the missing GRANT in brackets behind a space; "" where it is not known, as within a trigger."""
    denied = _DENIED.fullmatch(message)
    if denied is None:
        return ""  # "must be owner of view ..." says it all
    kind, name = denied.groups()
    verb = statement.split(maxsplit=1)[0].upper() if statement.strip() else ""
    match kind:
        case "table" | "view" | "relation" if _written(name, needs_schema=False).search(statement):
            needed = f"{_rights_on(name, verb, statement)} ON {_with_schema(name, statement)}"
        case "sequence":
            needed = f"USAGE ON SEQUENCE {_with_schema(name, statement)}"
        case "schema":
            needed = f"{'USAGE, CREATE' if verb == 'CREATE' else 'USAGE'} ON SCHEMA {name}"
        case "database":
            needed = f"CREATE ON DATABASE {name}"
        case _:
            return ""
    return Phrase(" (needed: GRANT {needed})", needed=needed)


def _rights_on(name: str, verb: str, statement: str) -> str:
    """Return the rights that a statement needs on one of its tables; it writes only to the first one."""
    first = _NAMES_A_TABLE.search(statement)
    if first is None or not _written(name, needs_schema=False).match(statement, first.end()):
        return "SELECT"
    if verb == "INSERT" and " RETURNING " in statement:
        return "SELECT, INSERT"
    if verb in ("SELECT", "DELETE") and _LOCKS.search(statement):
        return "SELECT, UPDATE, DELETE" if verb == "DELETE" else "SELECT, UPDATE"
    return _RIGHTS_OF_TARGET.get(verb, "SELECT")


def _with_schema(name: str, statement: str) -> str:
    """Return the name as the statement writes it, its schema included."""
    found = _written(name, needs_schema=True).search(statement)
    return found[0] if found else name


def _written(name: str, *, needs_schema: bool) -> re.Pattern[str]:
    """Return a pattern for a table's name in SQL; `needs_schema` says whether the schema may be left out."""
    schema, own = r'(?:\w+|"(?:[^"]|"")+")\.', re.escape(name)
    return re.compile(rf'{schema if needs_schema else f"(?:{schema})?"}(?:{own}\b|"{own}")')
