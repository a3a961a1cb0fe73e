"""Which GRANT is missing, by PostgreSQL's message and the statement that it refused."""

import re
from collections.abc import Mapping
from typing import Final

from db_dedup.dialects.grants import script_preparer
from db_dedup.translation import Phrase

_DENIED: Final = re.compile(r"permission denied for (?:materialized )?(\w+) (.+)")
_NOT_THE_OWNER: Final = re.compile(r"must be owner of (\w+) (.+)")
_HIDES_ROWS: Final = "row-level security policy"
"""In the message about a query of ours whose rows a policy would filter."""
_MAKES_A_TRIGGER: Final = re.compile(r"CREATE OR REPLACE TRIGGER\b|ALTER TABLE .+ ENABLE ALWAYS TRIGGER\b")
_NAMES_A_TABLE: Final = re.compile(r"\b(?:INTO|COPY|UPDATE|FROM)\s+", re.IGNORECASE)
_LOCKS: Final = re.compile(r"\bFOR (?:(?:NO KEY )?UPDATE|SHARE)\b", re.IGNORECASE)
_RIGHTS_OF_TARGET: Final[Mapping[str, str]] = {
    "INSERT": "INSERT",
    "COPY": "INSERT",
    "UPDATE": "SELECT, UPDATE",  # it finds its rows by their columns, as ours all do
    "DELETE": "SELECT, DELETE",
}
_PREPARER: Final = script_preparer("postgresql")


def needed_grant(message: str, statement: str) -> str:
    """Return the missing right in brackets behind a space; "" where it is not known, as within a trigger."""
    if _HIDES_ROWS in message:
        return Phrase(
            " (needed: an account that sees all rows, such as one with BYPASSRLS, or the owner of the table "
            "unless it has FORCE ROW LEVEL SECURITY)"
        )
    refused = _DENIED.fullmatch(message) or _NOT_THE_OWNER.fullmatch(message)
    if refused is None:
        return ""
    kind, name = refused.groups()
    statement = statement.strip().replace("%%", "%")  # the driver wants a percent sign of a name twice
    if kind == "table" and _MAKES_A_TRIGGER.match(statement):
        # The right TRIGGER is not enough: only the owner can make a trigger fire always.
        return Phrase(
            " (needed: membership in the role that owns {table}; "
            "`db-dedup sql grants TABLE --part attacher` prints the GRANT)",
            table=name,
        )
    if _NOT_THE_OWNER.fullmatch(message):
        return ""  # "must be owner of view ..." says it all
    verb = statement.split(maxsplit=1)[0].upper() if statement else ""
    match kind:
        case "table" | "view" | "relation" if _written(name, needs_schema=False).search(statement):
            needed = f"{_rights_on(name, verb, statement)} ON {_with_schema(name, statement)}"
        case "sequence":
            needed = f"USAGE ON SEQUENCE {_with_schema(name, statement)}"
        case "schema":
            needed = f"{'USAGE, CREATE' if verb == 'CREATE' else 'USAGE'} ON SCHEMA {_PREPARER.quote(name)}"
        case "database":
            needed = f"CREATE ON DATABASE {_PREPARER.quote(name)}"
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
    """Return the name as the statement writes it, its schema included; quoted where it needs quotes."""
    found = _written(name, needs_schema=True).search(statement)
    return found[0] if found else _PREPARER.quote(name)


def _written(name: str, *, needs_schema: bool) -> re.Pattern[str]:
    """Return a pattern for a table's name in SQL; `needs_schema` says whether the schema may be left out."""
    schema, in_quotes = r'(?:\w+|"(?:[^"]|"")+")\.', re.escape(_PREPARER.quote_identifier(name))
    bare = rf"|{re.escape(name)}\b" if _PREPARER.quote(name) == name else ""
    return re.compile(rf'(?<![\w".]){schema if needs_schema else f"(?:{schema})?"}(?:{in_quotes}{bare})')
