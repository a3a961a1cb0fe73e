"""The fixed views on a small example whose answer is known by hand."""

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, column, insert, inspect, select, table, text

from db_dedup.records.names import Namespace
from db_dedup.schema.migrate import upgrade
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import CreateView, DropView, fixed_view
from tests.servers import Database

FOUND_AT = datetime(2024, 5, 6, 7, 8, 9, 123456)
LINKED_AT = datetime(2024, 5, 7)

WATCHED: list[dict[str, Any]] = [
    {"id": 1, "name": "petitions", "definition": "{}", "recipe": 2, "attached_at": FOUND_AT},
    {"id": 2, "name": "投诉", "definition": "{}", "recipe": 1, "attached_at": None},
    {"id": 3, "name": "never scanned", "definition": "{}", "recipe": None, "attached_at": None},
]


def row(id_: int, table_id: int, recipe: int, key: str, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(
        ("copy_of", "group_id", "is_loose", "is_abridged", "group_size", "found_at", "form")
    )
    return (
        {"id": id_, "table_id": table_id, "recipe": recipe, "row_key": key, "digest": bytes(16)}
        | nothing
        | more
    )


FINGERPRINTS = [
    row(1, 1, 2, "A", form=0, group_id=1, is_loose=True, is_abridged=False, group_size=3),
    row(2, 1, 2, "B", form=2, group_id=1),
    row(3, 1, 2, "C", form=0, group_id=1, copy_of=1, found_at=LINKED_AT),
    row(4, 1, 2, "D"),
    # The recipe that served before.
    row(5, 1, 1, "A", group_id=5, group_size=3),
    row(6, 1, 1, "B", group_id=5),
    row(7, 1, 1, "C", group_id=5, copy_of=5, found_at=LINKED_AT),
    # Copies alone make a group; another table may use the same keys.
    row(8, 2, 1, "A", group_id=8, group_size=2),
    row(9, 2, 1, "甲 ", group_id=8, copy_of=8, found_at=LINKED_AT),
    # A first scan that has not finished.
    row(10, 3, 1, "A", group_id=10, group_size=2),
    row(11, 3, 1, "B", group_id=10),
]
PAIRS: list[dict[str, Any]] = [
    {
        "id_a": 1,
        "id_b": 2,
        "distance": 3,
        "similarity": 0.75,
        "found_at": FOUND_AT,
        "kind": 2,
        "contained_id": 2,
        "other_place": True,
    },
    # As an upgrade leaves pairs that are stored already: without a kind.
    {
        "id_a": 1,
        "id_b": 4,
        "distance": 2,
        "similarity": 0.5,
        "found_at": FOUND_AT,
        **dict.fromkeys(("kind", "contained_id", "other_place")),
    },
    *(
        {
            "id_a": a,
            "id_b": b,
            "distance": 1,
            "similarity": similarity,
            "found_at": FOUND_AT,
            "kind": 1,
            "contained_id": None,
            "other_place": False,
        }
        for a, b, similarity in ((5, 6, None), (10, 11, 1.0))
    ),
]
CHANGES: list[dict[str, Any]] = [
    {"table_id": 1, "row_key": "A", "operation": "U", "queued_at": LINKED_AT},
    {"table_id": 1, "row_key": "A", "operation": "U", "queued_at": FOUND_AT},
    {"table_id": 2, "row_key": "B", "operation": "I", "queued_at": LINKED_AT},
]
DEAD: list[dict[str, Any]] = [
    {"table_id": 1, "row_key": key, "operation": "U", "attempts": 3, "error": "no", "failed_at": FOUND_AT}
    for key in "BCD"
]
SCANS: list[dict[str, Any]] = [
    {"table_id": 1, "recipe": 2, "recipe_digest": "d", "owner": "o"} | times
    for times in (
        {"state": "finished", "started_at": FOUND_AT, "finished_at": FOUND_AT},
        {"state": "finished", "started_at": FOUND_AT, "finished_at": LINKED_AT},
        {"state": "failed", "started_at": LINKED_AT, "finished_at": datetime(2024, 5, 8)},
        {"state": "running", "started_at": LINKED_AT, "finished_at": None},
    )
]

EXPECTED: dict[str, set[tuple[Any, ...]]] = {
    "duplicate_pairs": {
        ("petitions", "A", "B", 3, 0.75, FOUND_AT, "contained", "B", True, "unofficial_retweet"),
        ("petitions", "A", "C", 0, 1.0, LINKED_AT, "copy", None, False, "none"),
        ("petitions", "A", "D", 2, 0.5, FOUND_AT, None, None, None, None),
        ("投诉", "A", "甲 ", 0, 1.0, LINKED_AT, "copy", None, False, None),
    },
    "duplicate_groups": {
        ("petitions", "A", 3, "A", True, False),
        ("投诉", "A", 2, "A", False, False),
    },
    "duplicate_members": {
        ("petitions", "A", "A", True),
        ("petitions", "A", "B", False),
        ("petitions", "A", "C", False),
        ("投诉", "A", "A", True),
        ("投诉", "A", "甲 ", False),
    },
    "queue_lag": {
        ("petitions", 2, FOUND_AT, 3, FOUND_AT, LINKED_AT),
        ("投诉", 1, LINKED_AT, 0, None, None),
        ("never scanned", 0, None, 0, None, None),
    },
}
COLUMNS = {
    "duplicate_pairs": [
        *("table_name", "key_a", "key_b", "distance", "similarity", "found_at"),
        *("kind", "contained_key", "other_place", "form"),
    ],
    "duplicate_groups": ["table_name", "group_id", "size", "representative_key", "is_loose", "is_abridged"],
    "duplicate_members": ["table_name", "group_id", "row_key", "is_representative"],
    "queue_lag": ["table_name", "waiting", "oldest_at", "dead", "attached_at", "last_scan_at"],
}


def fill(connection: Connection, namespace: Namespace) -> None:
    tables = our_tables(namespace)
    upgrade(connection, namespace)
    connection.execute(insert(tables.watched_table), WATCHED)
    connection.execute(insert(tables.fingerprint), FINGERPRINTS)
    connection.execute(insert(tables.pair), PAIRS)
    connection.execute(insert(tables.change), CHANGES)
    connection.execute(insert(tables.dead_change), DEAD)
    connection.execute(insert(tables.scan), SCANS)


@pytest.mark.parametrize("base", EXPECTED)
def test_what_the_views_show(database: Database, namespace: Namespace, base: str) -> None:
    with database.engine.begin() as connection:
        fill(connection, namespace)
        found = connection.execute(select(fixed_view(namespace, base))).all()
        columns = inspect(connection).get_columns(namespace.name(base), namespace.schema)
    assert [c["name"] for c in columns] == COLUMNS[base]
    assert sorted(map(tuple, found)) == sorted(EXPECTED[base])
    flags = [value for row in found for name, value in row._mapping.items() if name.startswith("is_")]
    assert all(isinstance(flag, bool) for flag in flags)


def test_flags_without_our_types(database: Database, namespace: Namespace) -> None:
    view = table(namespace.name("duplicate_members"), column("is_representative"), schema=namespace.schema)
    with database.engine.begin() as connection:
        fill(connection, namespace)
        flags = set(connection.scalars(select(view.c.is_representative)))
    assert {type(flag) for flag in flags} == {bool if database.name == "postgresql" else int}
    assert flags == {0, 1}


LOOKUPS = [
    ("duplicate_pairs", "key_a"),
    ("duplicate_pairs", "key_b"),
    ("duplicate_groups", "group_id"),
    ("duplicate_members", "group_id"),
    ("duplicate_members", "row_key"),
]


@pytest.mark.parametrize(("base", "key"), LOOKUPS)
def test_a_look_up_by_key_reads_no_whole_table(sqlite_database: Database, base: str, key: str) -> None:
    namespace = Namespace(None, "dedup_")
    view = fixed_view(namespace, base)
    query = select(view).where(view.c.table_name == "petitions", view.c[key] == "A")
    with sqlite_database.engine.begin() as connection:
        fill(connection, namespace)
        rows = [
            row(n, 1, 2, f"key {n}", group_id=n - n % 2, group_size=None if n % 2 else 2)
            for n in range(100, 5100)
        ]
        connection.execute(insert(our_tables(namespace).fingerprint), rows)
        connection.execute(text("ANALYZE"))
        sql = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = [step.detail for step in connection.execute(text(f"EXPLAIN QUERY PLAN {sql}"))]
    scanned = {detail.split()[1] for detail in plan if detail.startswith("SCAN")}
    assert scanned <= {"watched", "pair", view.name}, plan
    assert any(" INDEX " in detail and "row_key=?" in detail for detail in plan), plan


def test_a_view_with_values_in_it_is_made_and_dropped(database: Database, namespace: Namespace) -> None:
    """DDL takes no parameters: values in the select are written into it."""
    name, schema = namespace.name('duplicates_of_50%: "信访件"'), namespace.schema
    watched = our_tables(namespace).watched_table
    query = select(watched.c.name).where(watched.c.name != "it's 100% \\ :this").where(watched.c.id == 1)
    with database.engine.begin() as connection:
        fill(connection, namespace)
        connection.execute(CreateView(name, schema, query))
        made = table(name, column("name"), schema=schema)
        assert connection.scalars(select(made.c.name)).all() == ["petitions"]
        connection.execute(DropView(name, schema))
        connection.execute(DropView(name, schema))
        assert name not in inspect(connection).get_view_names(schema)
