"""What the triggers on a user's table are made from in every database.

They append to our table `change` and do nothing else. Operations are `I` (a row came), `U` (a column that
counts has changed), `D` (a row went), `T` (the whole table was emptied), `X` (a key that cannot be stored).
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, TextClause, column, table
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import NullType

from db_dedup.records import SourceColumn
from db_dedup.records.keys import MAX_KEY_LENGTH
from db_dedup.records.names import Namespace, object_name

TRIGGER_VERSION: Final = 4
"""To be incremented whenever the same plan makes other triggers."""

ROW_EVENTS: Final = ("insert", "update", "delete")

TABLE_LOCK_SECONDS: Final = 5
"""How long a statement that makes triggers waits for a busy table. Later writers wait behind it."""


@dataclass(frozen=True)
class TriggerTarget:
    """The table that triggers are on, and what their names are made of.

    Attributes:
        table: its name in the database.
        schema: its schema; None for the default one.
        table_id: its number among the watched tables, which the triggers write.
        watched_name: what it is called in the settings.
        namespace: where our table `change` is.
    """

    table: str
    schema: str | None
    table_id: int
    watched_name: str
    namespace: Namespace

    def trigger_name(self, event: str, limit: int | None, *, limit_counts_bytes: bool) -> str:
        """Return the name of the trigger on an event.

        The number keeps the names of two tables apart where a database takes upper and lower case as one.
        On PostgreSQL the schema of our tables stands for the prefix: two installations can watch one table.
        """
        prefix = self.namespace.prefix or f"{self.namespace.schema}_"
        base = f"{self.watched_name}_{self.table_id}_{event}"
        return object_name(Namespace(None, prefix), base, limit, limit_counts_bytes=limit_counts_bytes)


@dataclass(frozen=True)
class TriggerPlan:
    """Everything that decides how the triggers on a table are made.

    Attributes:
        key: the columns that identify a row.
        counted: those whose change counts, the key's among them, in the table's order.
    """

    target: TriggerTarget
    key: tuple[SourceColumn, ...]
    counted: tuple[SourceColumn, ...]

    @cached_property
    def digest(self) -> str:
        """128 bits in hexadecimal digits: the same as long as the same triggers would be made."""
        key = [(c.name, c.family, c.type_name) for c in self.key]
        counted = [(c.name, c.family) for c in self.counted]
        parts = repr((TRIGGER_VERSION, self.target, key, counted))
        return hashlib.sha256(parts.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class FoundTrigger:
    """A trigger, or its function, as the database's catalogue shows it.

    Attributes:
        definition: all that decides what it does, in a form that does not depend on the session; None where
            it is hidden.
        fault: why it does not fire as it should, although it is there; None where it does.
        hidden: the right to see it that this account does not have; None where it has it.
    """

    name: str
    definition: str | None
    fault: str | None = None
    hidden: str | None = None


@dataclass(frozen=True)
class QueueTrigger:
    """A trigger that writes into our queue, whoever made it and whatever it is called.

    Attributes:
        table: the table that it is on.
        function: what it calls; None where a trigger is its own program.
        drop: the statement that drops it.
    """

    name: str
    table: str
    function: str | None
    drop: str


class Renderer:
    """Writes the pieces of a trigger in one dialect: names quoted, values written out, percent signs single.

    Args:
        dialect: makes SQLAlchemy's dialect.
        folder: where the templates are.
    """

    def __init__(self, dialect: Callable[..., Dialect], folder: Path) -> None:
        # In other styles of parameters a percent sign comes out doubled.
        self._dialect = dialect(paramstyle="named")
        self._preparer = self._dialect.identifier_preparer
        self._folder = folder

    def statement(self, job: str, **pieces: object) -> str:
        """Return the template `<job>.sql` with its gaps filled."""
        return (self._folder / f"{job}.sql").read_text(encoding="utf-8").strip().format(**pieces)

    def expression(self, expression: ColumnElement[Any]) -> str:
        """Return SQL without parameters: triggers take none."""
        return str(expression.compile(dialect=self._dialect, compile_kwargs={"literal_binds": True}))

    def name(self, name: str, schema: str | None = None) -> str:
        """Return a quoted name, behind its schema if it has one."""
        quote = self._preparer.quote_identifier
        return quote(name) if schema is None else f"{quote(schema)}.{quote(name)}"

    def pieces(self, target: TriggerTarget) -> dict[str, object]:
        """Return what every template of a table may use."""
        return {
            "table": self.name(target.table, target.schema),
            "change": self.queue_name(target.namespace),
            "table_id": target.table_id,
            "max_length": MAX_KEY_LENGTH,
        }

    def queue_name(self, namespace: Namespace) -> str:
        """Return the name of our queue as each trigger writes it."""
        return self.name(namespace.name("change"), namespace.schema)


class EventTriggers:
    """The triggers of a dialect that has one for each event on a row, without a function that they call."""

    def __init__(self, renderer: Renderer, max_name_length: int | None) -> None:
        """Prepare.

        Args:
            renderer: has the templates `create_<event>_trigger` and `drop_trigger`.
            max_name_length: the most characters of a trigger's name; None where nothing limits it.
        """
        self._renderer, self._max_name_length = renderer, max_name_length

    def names(self, target: TriggerTarget) -> list[str]:
        """Return the names of our triggers on the table."""
        limit = self._max_name_length
        return [target.trigger_name(event, limit, limit_counts_bytes=False) for event in ROW_EVENTS]

    def create(self, target: TriggerTarget, pieces: Mapping[str, object]) -> list[str]:
        """Return the statements that drop triggers of our names and make ours from these pieces."""
        statements = self.drop(target)
        for event, name in zip(ROW_EVENTS, self.names(target), strict=True):
            trigger = self._renderer.name(name, target.schema)
            statements.append(self._renderer.statement(f"create_{event}_trigger", trigger=trigger, **pieces))
        return statements

    def drop(self, target: TriggerTarget) -> list[str]:
        """Return the statements that drop our triggers; one that is not there is no error."""
        return [self._drop(self._renderer.name(name, target.schema)) for name in self.names(target)]

    def writing_to_queue(
        self, connection: Connection, namespace: Namespace, query: TextClause
    ) -> list[QueueTrigger]:
        """Return the triggers whose statement names our queue.

        Args:
            connection: in a transaction.
            namespace: where our queue is.
            query: (name, table) of the triggers whose statement has the text `change`.
        """
        rows = connection.execute(query, {"change": self._renderer.queue_name(namespace)})
        return [
            QueueTrigger(name, table, None, self._drop(self._renderer.name(name))) for name, table in rows
        ]

    def _drop(self, trigger: str) -> str:
        return self._renderer.statement("drop_trigger", trigger=trigger)


def row_of_trigger(which: str, plan: TriggerPlan) -> FromClause:
    """Return `NEW` or `OLD` as a table, from which expressions are made."""
    columns = {c.name: c for c in (*plan.key, *plan.counted)}
    return table(
        quoted_name(which, quote=False),
        *(column(quoted_name(name, quote=True), NullType()) for name in columns),
    )
