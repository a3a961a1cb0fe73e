"""Which tests a thorough run leaves out: another server proves the same, or another day runs them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.thorough import (
    IN_TURN,
    SPARING,
    TWIN,
    TWINS_IN_TURN,
    more_on_servers,
    of_twins,
    others_out_of_turn,
    out_of_turn,
)
from tests.thorough_list import THOROUGH

TESTS = Path(__file__).parent

SCANS = [
    f"scan/test_x.py::test_{test}[{server}{case}]"
    for test in "ab"
    for case in ("", "-2")
    for server in ("sqlite", "postgresql", "mariadb", "mysql")
]


def test_servers_take_turns_within_a_file() -> None:
    assert list(out_of_turn(SCANS, 0)) == [
        "scan/test_x.py::test_a[mariadb]",
        "scan/test_x.py::test_a[postgresql-2]",
        "scan/test_x.py::test_b[mariadb]",
        "scan/test_x.py::test_b[postgresql-2]",
    ]


def test_mariadb_and_mysql_take_turns_where_their_dialects_differ() -> None:
    changes = [name.replace("scan/", "worker/") for name in SCANS]
    assert list(out_of_turn(changes, 1)) == [
        "worker/test_x.py::test_a[mysql]",
        "worker/test_x.py::test_a[mariadb-2]",
        "worker/test_x.py::test_b[mysql]",
        "worker/test_x.py::test_b[mariadb-2]",
    ]


def test_two_runs_one_after_the_other_leave_nothing_out() -> None:
    both = [*SCANS, *(name.replace("scan/", "worker/") for name in SCANS)]
    assert set(out_of_turn(both, 7)).isdisjoint(out_of_turn(both, 8))


def test_only_what_differs_in_the_server_alone_takes_turns() -> None:
    alone = ["scan/test_x.py::test_a[postgresql]", "scan/test_x.py::test_b[mariadb]"]
    both = ["guest/test_x.py::test_a[postgresql-mariadb]", "guest/test_x.py::test_a[mariadb-postgresql]"]
    elsewhere = ["dialects/test_x.py::test_a[postgresql]", "dialects/test_x.py::test_a[mariadb]"]
    assert list(out_of_turn(alone + both + elsewhere, 0)) == []


def test_the_other_tests_take_turns_within_a_file() -> None:
    names = [f"flow/test_{file}.py::test_{test}" for file in "xy" for test in "abcd"]
    kept = [sorted({*names} - {*others_out_of_turn(names, day)}) for day in range(4)]
    assert kept == [[f"flow/test_{file}.py::test_{test}" for file in "xy"] for test in "adcb"]


def test_four_days_leave_nothing_out() -> None:
    paired = [name for name in SCANS if "postgresql" in name or "mariadb" in name]
    others = [name for name in SCANS if name not in paired]
    for first in range(8):
        days = range(first, first + 4)
        left_out = Counter(
            name for day in days for name in (*out_of_turn(SCANS, day), *others_out_of_turn(SCANS, day))
        )
        assert left_out == {**dict.fromkeys(paired, 2), **dict.fromkeys(others, 3)}


def test_one_test_of_a_file_is_enough_on_a_server() -> None:
    on_one = ["store/test_x.py::test_a[sqlite]", "store/test_x.py::test_a[mariadb]"]
    on_both = [
        f"{folder}/test_x.py::test_{test}[{server}]"
        for folder in ("cli", "scan", "worker")
        for test in "ab"
        for server in ("sqlite", "postgresql", "mariadb")
    ]
    assert list(more_on_servers([*on_one, *on_both])) == [
        "cli/test_x.py::test_a[mariadb]",
        "cli/test_x.py::test_b[postgresql]",
        "cli/test_x.py::test_b[mariadb]",
        "scan/test_x.py::test_a[postgresql]",
        "scan/test_x.py::test_b[postgresql]",
        "scan/test_x.py::test_b[mariadb]",
    ]


def test_a_file_whose_turn_it_is_on_a_server_that_it_has_not_keeps_another_one() -> None:
    names = ["cli/test_x.py::test_a[postgresql]", "cli/test_x.py::test_b[postgresql]"]
    assert list(more_on_servers(names)) == names[1:]


def test_one_test_of_a_file_is_enough_on_mysql_where_it_is_a_twin() -> None:
    others = [name.replace("scan/", "triggers/") for name in SCANS]
    assert list(of_twins(SCANS + others)) == [name for name in SCANS if "mysql" in name][1:]


def test_every_entry_of_the_lists_is_the_beginning_of_a_test() -> None:
    """A test that is renamed or moved would leave its list unnoticed. Cases in brackets are not looked up."""
    names = [
        f"{file.relative_to(TESTS).as_posix()}::{node.name}"
        for file in TESTS.rglob("test_*.py")
        for node in ast.parse(file.read_bytes()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    listed = {entry.partition("[")[0] for entry in (*THOROUGH, *SPARING, *IN_TURN, *TWIN, *TWINS_IN_TURN)}
    assert [entry for entry in sorted(listed) if not any(name.startswith(entry) for name in names)] == []
