"""The plans by which PostgreSQL has run statements, as its own module `auto_explain` reports them.

A statement that is explained once more, with its values written out, may get another plan than the prepared
one that has run. So each session of the engine loads the module, and the server sends each plan as a notice.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, event

_SETTINGS = (
    "LOAD 'auto_explain'",
    "SET auto_explain.log_min_duration = 0",
    "SET auto_explain.log_analyze = on",
    "SET auto_explain.log_buffers = on",
    "SET auto_explain.log_timing = off",
    "SET auto_explain.log_format = json",
    "SET auto_explain.log_level = notice",
)
_MARK = "plan:\n"


@dataclass(frozen=True)
class Access:
    """One read of a table or an index in a plan.

    Attributes:
        table: its name; empty for a bitmap's index, which is named alone.
        index: its name; None for a sequential scan.
    """

    table: str
    index: str | None

    def __str__(self) -> str:
        """Name the index, or the table that is read as a whole."""
        return self.index or f"ALL OF {self.table}"


@dataclass(frozen=True)
class Plan:
    """One statement that has run.

    Attributes:
        text: of the statement, with the numbers of its parameters.
        accesses: in the order of the plan, each once.
        milliseconds: of the whole statement.
        rows: that it gave.
        dropped: rows that were read and fell to a filter.
        pages: of 8 kB, read from the cache or the disk.
    """

    text: str
    accesses: tuple[Access, ...]
    milliseconds: float
    rows: int
    dropped: int
    pages: int

    @property
    def label(self) -> str:
        """Name the statement by its first word and by what it reads."""
        return f"{self.text.split(None, 1)[0].lower()} by {', '.join(map(str, self.accesses))}"


@dataclass
class Recorder:
    """Collects the plans of all statements of the sessions that an engine opens from now on."""

    plans: list[Plan] = field(default_factory=list)

    def listen(self, engine: Engine) -> None:
        """Load the module in each new session; only a superuser may."""
        engine.dispose()
        event.listen(engine, "connect", self._prepare)

    def take(self) -> list[Plan]:
        """Return the plans since the last call."""
        taken, self.plans = self.plans, []
        return taken

    def _prepare(self, connection: Any, _: object) -> None:
        connection.add_notice_handler(self._note)
        before, connection.autocommit = connection.autocommit, True
        for setting in _SETTINGS:
            connection.execute(setting)
        connection.autocommit = before

    def _note(self, notice: Any) -> None:
        said = notice.message_primary or ""
        head, mark, rest = said.partition(_MARK)
        if mark:
            self.plans.append(read_plan(json.loads(rest), float(head.split()[1])))


def read_plan(explained: Mapping[str, Any], milliseconds: float) -> Plan:
    """Return what a plan in JSON says."""
    top, nodes = explained["Plan"], list(_nodes(explained["Plan"]))
    found = [_access(node) for node in nodes]
    dropped = sum(
        node.get(name, 0) * node["Actual Loops"]
        for node in nodes
        for name in ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    )
    return Plan(
        " ".join(explained["Query Text"].split()),
        tuple(dict.fromkeys(one for one in found if one is not None)),
        milliseconds,
        round(top["Actual Rows"] * top["Actual Loops"]),
        round(dropped),
        top.get("Shared Hit Blocks", 0) + top.get("Shared Read Blocks", 0),
    )


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a node and all below it that have run."""
    if node["Actual Loops"]:
        yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _access(node: Mapping[str, Any]) -> Access | None:
    if "Index Name" in node:
        return Access(node.get("Relation Name", ""), node["Index Name"])
    if node["Node Type"] == "Seq Scan":
        return Access(node["Relation Name"], None)
    return None


def reading_all(plans: Sequence[Plan], large: Collection[str]) -> Iterator[tuple[str, Plan]]:
    """Yield (table, plan) of statements that have read all of one of the large tables."""
    for plan in plans:
        for one in plan.accesses:
            if one.index is None and one.table in large:
                yield one.table, plan
