"""Every example runs, and says what brute force over the same petitions says."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from db_dedup import Deduplicator, Text, Value
from db_dedup.cli.demo import fill
from db_dedup.config import watched_table
from db_dedup.sample import Petition, generate_petitions
from tests.scan.reference import brute_force, components
from tests.servers import Database

EXAMPLES = Path(__file__).parent.parent / "examples"
TEXTS = {"title": Text(), "content": Text()}
PETITIONS = generate_petitions(500).petitions
BY_KEY = {str(p.id): p for p in PETITIONS}


def run(script: str, *arguments: str, folder: Path) -> str:
    """What an example prints; it leaves nothing in the folder that it is run in."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir())
    return done.stdout


def groups_of(petitions: list[Petition], **settings: Any) -> dict[str, set[str]]:
    """Representative -> members, by brute force; the settings are those of a watched table."""
    watched = watched_table("petitions", {"columns": TEXTS, **settings})
    received = [str(p.id) for p in sorted(petitions, key=lambda p: (p.created_at, p.id))]
    return components(brute_force(petitions, watched), received)


def test_sqlite_file(tmp_path: Path) -> None:
    said = run("sqlite_file.py", folder=tmp_path)
    groups = groups_of(PETITIONS, columns={**TEXTS, "region": Value()}, order="created_at")
    assert f"500 petitions, {len(groups)} groups of duplicates" in said
    largest = sorted((-len(members), int(key)) for key, members in groups.items())[:3]
    assert re.findall(r"petition (\d+) came (\d+) times", said) == [(str(k), str(-n)) for n, k in largest]
    assert "already there as 1:" in said


def test_alembic_host(postgresql_database: Database, tmp_path: Path) -> None:
    said = run("alembic_host/petition_office.py", postgresql_database.url, folder=tmp_path)
    groups: dict[str, set[str]] = {}
    by_region = defaultdict(list)
    for petition in PETITIONS:
        by_region[petition.region].append(petition)
    for petitions in (petitions for petitions in by_region.values() if len(petitions) > 1):
        groups |= groups_of(petitions)
    grouped = sum(map(len, groups.values()))
    first, rest = said.split("\n", 1)
    assert first == f"500 petitions, {len(groups)} groups with {grouped} of them"
    assert re.search(
        rf"^{PETITIONS[0].title}: seems to repeat the petition of 2023-01-01", rest, re.MULTILINE
    )
    assert "建议增设图书馆: new" in rest
    assert "No new upgrade operations detected." in rest
    with postgresql_database.engine.connect() as connection:
        linked = text("SELECT e.title FROM petitions p JOIN petitions e ON e.id = p.earlier_id")
        assert connection.scalars(linked).all() == [PETITIONS[0].title]
        assert connection.scalar(text("SELECT count(*) FROM petitions")) == 502
        assert inspect(connection).get_table_names() == ["alembic_version", "petitions"]
    # The view of db_dedup shows what the migrations drop.
    settings = str(EXAMPLES / "alembic_host/alembic.ini")
    alembic = [sys.executable, "-m", "alembic", "-c", settings, "downgrade"]
    for revision, tables in (("0001", ["alembic_version", "petitions"]), ("base", ["alembic_version"])):
        variables = {**os.environ, "DB_DEDUP_URL": postgresql_database.url}
        subprocess.run([*alembic, revision], env=variables, check=True)
        with postgresql_database.engine.connect() as connection:
            assert inspect(connection).get_table_names() == tables


def test_a_petition_without_a_date_waited_for_an_unknown_time(database: Database) -> None:
    with database.engine.begin() as connection:
        execute = connection.exec_driver_sql
        execute("CREATE TABLE petitions (id INTEGER PRIMARY KEY, content TEXT, created_at TIMESTAMP NULL)")
        for number, moment in enumerate(("'2024-01-01 10:00:00'", "'2024-01-02 09:00:00'", "NULL")):
            execute(f"INSERT INTO petitions VALUES ({number}, '{PETITIONS[0].content}', {moment})")
    dedup = Deduplicator(database.engine, "petitions", {"content": 1}, order="created_at")
    dedup.upgrade()
    dedup.scan()
    kind = database.engine.dialect.name.replace("mariadb", "mysql")
    query = (EXAMPLES / f"sql_over_views/days_to_the_repeat.{kind}.sql").read_text("utf-8")
    with database.engine.connect() as connection:
        found = connection.execute(text(query.rstrip().rstrip(";"))).all()
    assert [tuple(row) for row in found] == [("1 to 7 days", 1), ("unknown", 1)]


@pytest.fixture
def answers(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """What each file of SQL gives, on the same petitions in each kind of database."""
    with database.engine.begin() as connection:
        fill(connection, generate_petitions(500))
    dedup = Deduplicator(database.engine, "petitions", TEXTS, order="created_at")
    dedup.upgrade()
    dedup.scan()
    ask: Callable[..., Any] = runpy.run_path(str(EXAMPLES / "sql_over_views/ask.py"))["ask"]
    return {answer.name: [tuple(row) for row in answer.rows] for answer in ask(database.engine)}


def test_sql_over_views(answers: dict[str, list[tuple[Any, ...]]]) -> None:
    groups = groups_of(PETITIONS, order="created_at")
    repeats = {member: key for key, members in groups.items() for member in members - {key}}
    assert answers.keys() == {path.name.partition(".")[0] for path in EXAMPLES.glob("sql_over_views/*.sql")}
    assert largest(answers["largest_groups"]) == wanted_largest(groups)
    assert [(w, n) for w, n in answers["days_to_the_repeat"]] == wanted_days(repeats)
    weeks = [(str(week), *rest) for week, *rest in answers["duplicates_a_week"]]
    check_shares(weeks, repeats, monday)
    assert [week for week, *_ in weeks] == sorted({monday(p) for p in PETITIONS}, reverse=True)[:12]
    for column in ("region", "channel"):
        rows = answers[f"repeats_by_{column}"]
        wanted = check_shares(rows, repeats, column_of(column))
        counts = sorted(((r, n) for n, r in wanted.values()), reverse=True)[:20]
        assert [(row[2], row[1]) for row in rows] == counts
    check_petitioners(answers["repeat_petitioners"], groups)


def largest(rows: Iterable[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in rows]


def wanted_largest(groups: dict[str, set[str]]) -> list[tuple[str, ...]]:
    first = sorted(groups, key=lambda key: (-len(groups[key]), key))[:10]
    found: list[tuple[str, ...]] = []
    for key in first:
        days = [BY_KEY[member].created_at.date() for member in groups[key]]
        found.append((key, BY_KEY[key].title, str(len(days)), str(min(days)), str(max(days))))
    return found


def wanted_days(repeats: dict[str, str]) -> list[tuple[str, int]]:
    names = {0: "the same day", 7: "1 to 7 days", 30: "8 to 30 days", 10_000: "later"}
    waited = Counter(
        min(bound for bound in names if (created(member) - created(key)).days <= bound)
        for member, key in repeats.items()
    )
    return [(name, waited[bound]) for bound, name in names.items() if waited[bound]]


def created(key: str) -> date:
    return BY_KEY[key].created_at.date()


def column_of(name: str) -> Callable[[Petition], str]:
    return lambda petition: getattr(petition, name) or "-"


def monday(petition: Petition) -> str:
    day = petition.created_at.date()
    return str(day - timedelta(days=day.weekday()))


def check_shares(
    rows: Iterable[Iterable[Any]], repeats: dict[str, str], kind: Callable[[Petition], str]
) -> dict[str, tuple[int, int]]:
    """Each row has the right figures. Gives those of all kinds: petitions and repeats."""
    received = Counter(map(kind, PETITIONS))
    repeated = Counter(kind(BY_KEY[member]) for member in repeats)
    for name, petitions, repeats_in_it, percent in rows:
        assert (petitions, repeats_in_it) == (received[name], repeated[name]), name
        assert float(percent) == pytest.approx(100 * repeated[name] / received[name], abs=0.051)
    return {name: (received[name], repeated[name]) for name in received}


def check_petitioners(rows: list[tuple[Any, ...]], groups: dict[str, set[str]]) -> None:
    sent: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, members in groups.items():
        for petition in (BY_KEY[member] for member in members):
            for known_by, who in (("name", petition.petitioner), ("phone", petition.phone)):
                if who is not None:
                    sent[known_by, who].append(key)
    counts = {who: (len(keys), len(set(keys)), len(keys) - len(set(keys))) for who, keys in sent.items()}
    for known_by, who, *figures in rows:
        assert tuple(figures) == counts[known_by, who], who
    ranked = sorted(((n, repeats) for n, _, repeats in counts.values() if n > 1), reverse=True)
    assert [(row[2], row[4]) for row in rows] == ranked[:20]


def test_every_question_is_printed(tmp_path: Path) -> None:
    said = " ".join(run("sql_over_views/ask.py", folder=tmp_path).split())
    questions = {
        " ".join(re.findall(r"^-- (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
        for path in EXAMPLES.glob("sql_over_views/*.sql")
    }
    assert questions
    assert all(question in said for question in questions)
