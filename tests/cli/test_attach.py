"""`attach`, `detach`, and what the other commands say of triggers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.cli.conftest import fail, rows, run, succeed, view
from tests.servers import Database


def write_a_row(database: Database) -> None:
    columns = [row[0] for row in rows(database.engine, COLUMNS[database.name])]
    rest = ", ".join(column for column in columns if column != "id")
    with database.engine.begin() as connection:
        connection.execute(
            text(
                f"INSERT INTO petitions (id, {rest}) SELECT 100000, {rest} FROM petitions ORDER BY id LIMIT 1"
            )
        )


COLUMNS = {
    "sqlite": "SELECT name FROM pragma_table_info('petitions')",
    "postgresql": "SELECT column_name FROM information_schema.columns WHERE table_name = 'petitions'",
    "mariadb": "SELECT column_name FROM information_schema.columns "
    "WHERE table_name = 'petitions' AND table_schema = DATABASE()",
}


def queue(database: Database) -> list[tuple[object, ...]]:
    return rows(database.engine, f"SELECT row_key, operation FROM {view(database, 'change')}")


def test_attach_and_detach(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    write_a_row(petitions)
    assert queue(petitions) == []
    done = succeed("attach", "petitions")
    assert (done.stdout, done.stderr) == ("", "petitions is attached: from now on its changes are queued\n")
    again = succeed("attach", "petitions")
    assert again.stderr == "petitions is attached: its triggers are as they were made\n"
    with petitions.engine.begin() as connection:
        connection.execute(text("UPDATE petitions SET title = 'z' WHERE id = 100000"))
    assert queue(petitions) == [("100000", "U")]
    gone = succeed("detach", "petitions")
    assert gone.stderr == ("petitions is detached: it has no trigger of ours, 1 queued change is forgotten\n")
    assert queue(petitions) == []


def test_the_sql_that_is_shown_is_what_runs(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    shown = succeed("attach", "petitions", "--dry-run").stdout
    assert shown == succeed("sql", "triggers", "petitions").stdout
    assert fail("sql", "triggers").exit_code == 2
    run_by_hand(petitions, shown)
    write_a_row(petitions)
    assert queue(petitions) == [("100000", "I")]


def run_by_hand(database: Database, script: str) -> None:
    """In the database's own client, where there is one."""
    url = database.engine.url
    clients = {
        "sqlite": ["sqlite3", str(url.database)],
        "postgresql": ["psql", "-v", "ON_ERROR_STOP=1", "-U", str(url.username),
                       "-h", str(url.query.get("host")), str(url.database)],
        "mariadb": ["mariadb", "-u", str(url.username), f"--socket={url.query.get('unix_socket')}",
                    str(url.database)],
    }  # fmt: skip
    client = clients[database.name]
    if shutil.which(client[0]) and "None" not in client:
        subprocess.run(client, input=script.encode(), check=True, capture_output=True)
        return
    connection = database.engine.raw_connection()
    try:
        for statement in statements_of(script):
            connection.cursor().execute(statement)
        connection.commit()
    finally:
        connection.close()


def statements_of(script: str) -> list[str]:
    if not script.startswith("DELIMITER //\n"):
        return [script] if "$dedup$" in script else [s + ";" for s in script.split(";\n") if s]
    return [s for s in script.removeprefix("DELIMITER //\n").removesuffix("DELIMITER ;\n").split("//\n") if s]


def test_uninstall_names_the_triggers(petitions: Database) -> None:
    succeed("upgrade")
    succeed("attach", "petitions")
    shown = succeed("uninstall", "--dry-run").stdout.splitlines()
    assert "dedup_petitions_1_update" in shown
    assert succeed("uninstall", "--yes").stdout.splitlines() == shown
    write_a_row(petitions)


@pytest.mark.usefixtures("petitions")
def test_a_changed_file_is_told_to_scan_first() -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    file = Path("dedup.toml")
    file.write_text(file.read_text(encoding="utf-8") + "region = 1\n", encoding="utf-8")
    assert "db-dedup scan petitions" in str(fail("attach", "petitions"))


def test_verify_tells_of_a_trigger_that_is_gone(petitions: Database) -> None:
    for command in (["upgrade"], ["attach", "petitions"], ["scan", "petitions"]):
        succeed(*command)
    assert run("verify", "petitions").exit_code == 0
    table = " ON petitions" if petitions.name == "postgresql" else ""
    with petitions.engine.begin() as connection:
        connection.execute(text(f"DROP TRIGGER dedup_petitions_1_update{table}"))
    found = run("verify", "petitions")
    assert found.exit_code == 1
    assert "dedup_petitions_1_update is missing: `db-dedup attach petitions`" in found.stderr
    succeed("attach", "petitions")
    assert run("verify", "petitions").exit_code == 0


def test_an_unknown_table(scanned: Database) -> None:
    assert fail("attach", "petition").exit_code == 2
    assert fail("detach", "petition", "--url", scanned.url).exit_code == 2
