"""Which tests only a thorough run needs, beside those of `thorough_list`, and which it leaves out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

MYSQL = pytest.param("mysql", marks=pytest.mark.thorough)
"""A database among the parameters of a test. It is MariaDB's twin, so that only a thorough run starts it."""


SPARING = (
    "api/",
    "calibrate/",
    "cli/",
    "dialects/",
    "engines/",
    "group_history/",
    "guest/",
    "health/",
    "labels/",
    "orm/",
    "scan/",
    "schema/",
    "store/",
    "test_app.py",
    "test_petition_office.py",
    "triggers/test_attachment.py",
    "triggers/test_changes.py",
    "verify/",
    "web/",
)
"""Where `make test` runs one test of each file on a server, and all of them on SQLite."""

IN_TURN = (
    "api/",
    "bad_input/",
    "cli/",
    "engines/",
    "group_history/",
    "guest/",
    "health/",
    "interrupted/",
    "labels/",
    "orm/",
    "scan/",
    "test_quickstart.py",
    "verify/",
)
"""Where a thorough case runs on SQLite and on one server: PostgreSQL and MariaDB take turns, and what one run
leaves out the next one of CI does. With DB_DEDUP_TEST_EVERY=true all run."""

TWIN = (*IN_TURN, "test_app.py", "web/")
"""Where one test of each file is enough on MySQL, MariaDB's twin. The two differ in their dialects."""

_DAYS = 4
"""So many runs of CI leave nothing out: each runs one of so many other thorough tests of a file."""

TWINS_IN_TURN = ("schema/", "store/", "triggers/", "worker/")
"""Where a thorough case runs on SQLite, on PostgreSQL and on one of the twins, MariaDB and MySQL, in turn.
Only `dialects` and `upgrades` run on both each time."""

_SERVERS = ("mariadb", "postgresql")
_TURNS = ((IN_TURN, _SERVERS), (TWINS_IN_TURN, ("mariadb", "mysql")))
"""Folders, and the two servers of which a case there runs on one."""


def more_on_servers(names: Iterable[str]) -> Iterator[str]:
    """Give the tests on PostgreSQL and MariaDB for which another one of the file is enough in `make test`.

    That one is on PostgreSQL in one file and on MariaDB in the next.

    Args:
        names: of tests that are not thorough, from the folder of the tests on.
    """
    of_file: dict[str, list[str]] = {}
    for name in names:
        case = name.partition("[")[2]
        if name.startswith(SPARING) and any(server in case for server in _SERVERS):
            of_file.setdefault(name.partition("::")[0], []).append(name)
    for number, tests in enumerate(of_file.values()):
        server = _SERVERS[number % 2]
        kept = next((name for name in tests if server in name.partition("[")[2]), tests[0])
        yield from (name for name in tests if name != kept)


def of_twins(names: Iterable[str]) -> Iterator[str]:
    """Give the tests on MySQL for which another one of the same file is enough.

    Args:
        names: of tests, from the folder of the tests on.
    """
    seen: set[str] = set()
    for name in names:
        file, _, case = name.partition("::")
        if file.startswith(TWIN) and "mysql" in case.partition("[")[2]:
            if file in seen:
                yield name
            seen.add(file)


def out_of_turn(names: Iterable[str], first: int) -> Iterator[str]:
    """Give of each two tests that differ in the server alone the one whose turn it is not.

    Args:
        names: of thorough tests, from the folder of the tests on.
        first: an even number leaves the first case of each file out on MariaDB, an odd one on the other.
    """
    turns: Counter[str] = Counter()
    for pair in _pairs(list(names)):
        file = pair[0].partition("::")[0]
        yield pair[(first + turns[file]) % 2]
        turns[file] += 1


def others_out_of_turn(names: Iterable[str], first: int) -> Iterator[str]:
    """Give the other tests, but for every fourth one of each file.

    Args:
        names: as above.
        first: a multiple of four keeps the first one.
    """
    names = list(names)
    paired = {name for pair in _pairs(names) for name in pair}
    turns: Counter[str] = Counter()
    for name in names:
        if name not in paired:
            file = name.partition("::")[0]
            if (first + turns[file]) % _DAYS:
                yield name
            turns[file] += 1


def _pairs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give the tests that differ in the server alone, where servers take turns."""
    for folders, servers in _TURNS:
        cases: dict[str, dict[str, str]] = {}
        for name in names:
            test, _, case = name.partition("[")
            named = [server for server in servers if server in case]
            if name.startswith(folders) and len(named) == 1:
                cases.setdefault(f"{test}[{case.replace(named[0], '')}", {})[named[0]] = name
        for case_of in cases.values():
            if len(case_of) == len(servers):
                yield case_of[servers[0]], case_of[servers[1]]


def quick_first(cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrised test: the first for every run, the others for thorough ones."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.thorough) for case in others)]
