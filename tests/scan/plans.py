"""Which indexes a statement of ours uses, by the plan of each database."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event


@contextmanager
def captured(connection: Connection) -> Iterator[list[tuple[str, Any]]]:
    """The statements that run, as the driver gets them."""
    statements: list[tuple[str, Any]] = []

    def note(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        statements.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(connection, "before_cursor_execute", note)


def sqlite_plan(connection: Connection, statement: str, parameters: Any) -> tuple[set[str], bool]:
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    details = [row[-1] for row in rows if "dedup_fingerprint" in row[-1]]
    assert details, rows
    assert all(detail.startswith("SEARCH ") for detail in details), details
    used = {detail.split(" INDEX ")[1].split(" ")[0] for detail in details}
    return used, not all("USING COVERING INDEX" in detail for detail in details)


def postgresql_plan(connection: Connection, statement: str, parameters: Any) -> tuple[set[str], bool]:
    plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    plan = json.loads(plan) if isinstance(plan, str) else plan
    assert "Workers Planned" not in json.dumps(plan)
    nodes = list(scans(plan[0]["Plan"]))
    return {node["Index Name"] for node in nodes if "Index Name" in node}, any(
        node["Node Type"] != "Index Only Scan" for node in nodes
    )


def scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes of a plan that read a table or an index."""
    if "Scan" in str(node["Node Type"]) and node["Node Type"] != "Subquery Scan":
        yield node
    for child in node.get("Plans", []):
        yield from scans(child)


def mariadb_plan(connection: Connection, statement: str, parameters: Any) -> tuple[set[str], bool]:
    explain = f"EXPLAIN FORMAT=TRADITIONAL {statement}"
    rows = connection.exec_driver_sql(explain, parameters).mappings().all()
    reads = [row for row in rows if row["table"] and not row["table"].startswith("<")]
    return {row["key"] for row in reads}, not all("Using index" in (row["Extra"] or "") for row in reads)


PLANS = {"sqlite": sqlite_plan, "postgresql": postgresql_plan, "mariadb": mariadb_plan}
