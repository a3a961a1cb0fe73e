"""Whatever is wrong in the answer or in what we made: `verify` names it, gives 1, and says what mends it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, Table, delete, insert, make_url, select, text, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.flow.candidates.segments import Entries, pack, unpack
from db_dedup.schema.tables import Tables
from tests.cli.conftest import Result, fail, run, succeed, view
from tests.interrupted.conftest import by_settings, dump, fresh_answer
from tests.scan.conftest import answer
from tests.servers import Database
from tests.thorough import quick_first

Harm = Callable[[Connection, Tables], object]


@dataclass(frozen=True)
class Damage:
    """What is done to our tables, and what `verify` says of it, on either stream."""

    harm: Harm
    says: str


def first_pair(connection: Connection, tables: Tables) -> Any:
    return connection.execute(select(tables.pair).order_by(tables.pair.c.id_a, tables.pair.c.id_b)).first()


def of_pair(connection: Connection, tables: Tables) -> Any:
    first = first_pair(connection, tables)
    return (tables.pair.c.id_a == first.id_a) & (tables.pair.c.id_b == first.id_b)


def lose_a_pair(connection: Connection, tables: Tables) -> None:
    connection.execute(delete(tables.pair).where(of_pair(connection, tables)))


def invent_a_pair(connection: Connection, tables: Tables) -> None:
    ids = connection.execute(
        select(tables.fingerprint.c.id).where(tables.fingerprint.c.group_id.is_(None)).limit(2)
    ).scalars()
    first = first_pair(connection, tables)._asdict()
    connection.execute(insert(tables.pair).values({**first, "id_a": next(ids), "id_b": next(ids)}))


def turn_a_pair(connection: Connection, tables: Tables) -> None:
    first = first_pair(connection, tables)
    turned = {"id_a": first.id_b, "id_b": first.id_a}
    connection.execute(update(tables.pair).where(of_pair(connection, tables)).values(**turned))


def pair_with_nobody(connection: Connection, tables: Tables) -> None:
    connection.execute(update(tables.pair).where(of_pair(connection, tables)).values(id_b=999_999))


def change_pair(**values: Any) -> Harm:
    def harm(connection: Connection, tables: Tables) -> None:
        connection.execute(update(tables.pair).where(of_pair(connection, tables)).values(**values))

    return harm


def change_row(which: str, **values: Any) -> Harm:
    """Change the first `member` of a group, its `representative`, a `copy`, or a row that is `alone`."""

    def harm(connection: Connection, tables: Tables) -> None:
        row = tables.fingerprint
        condition = {
            "member": (row.c.group_id != row.c.id) & row.c.copy_of.is_(None),
            "representative": row.c.group_id == row.c.id,
            "copy": row.c.copy_of.is_not(None),
            "alone": row.c.group_id.is_(None),
        }[which]
        row_id = connection.execute(
            select(row.c.id).where(condition).order_by(row.c.id).limit(1)
        ).scalar_one()
        connection.execute(update(row).where(row.c.id == row_id).values(**values))

    return harm


def lose_a_row(connection: Connection, tables: Tables) -> None:
    row = tables.fingerprint
    last = connection.execute(select(row.c.id).where(row.c.group_id.is_(None)).limit(1)).scalar_one()
    connection.execute(delete(tables.band).where(tables.band.c.fingerprint_id == last))
    connection.execute(delete(row).where(row.c.id == last))


def invent_a_row(connection: Connection, tables: Tables) -> None:
    row: Table = tables.fingerprint
    computed = {f"block_{i}" for i in range(1, 5)} | {"id", "sketch", "sketch_size", "feature_set"}
    query = (
        select(*(c for c in row.columns if c.name not in computed)).where(row.c.group_id.is_(None)).limit(1)
    )
    like = connection.execute(query).one()._asdict()
    connection.execute(insert(row).values({**like, "row_key": "123456789", "fingerprint": None}))


def swap_fingerprints(connection: Connection, tables: Tables) -> None:
    row = tables.fingerprint
    query = select(row.c.id, row.c.fingerprint).where(row.c.group_id.is_(None)).limit(2)
    (a, x), (b, y) = connection.execute(query).all()
    for row_id, value in ((a, y), (b, x)):
        connection.execute(update(row).where(row.c.id == row_id).values(fingerprint=value))


def lose_a_piece(connection: Connection, tables: Tables) -> None:
    connection.execute(delete(tables.sketch_segment).where(tables.sketch_segment.c.piece == 3))


def invent_an_entry(connection: Connection, tables: Tables) -> None:
    row = connection.execute(select(tables.fingerprint.c.id).limit(1)).scalar_one()
    connection.execute(insert(tables.band).values(value=77, fingerprint_id=row))


def change_a_piece(connection: Connection, tables: Tables) -> None:
    """Still one that can be unpacked, with as many entries."""
    table = tables.sketch_segment
    packed = connection.execute(select(table.c.packed).where(table.c.piece == 3)).scalar_one()
    entries = unpack([bytes(packed)])
    hashes = np.sort(np.concatenate([entries.hashes[:1] ^ 2, entries.hashes[1:]]))
    (part,) = pack(Entries(hashes, entries.ids), 1)
    connection.execute(update(table).where(table.c.piece == 3).values(packed=part.packed))


def cut_a_piece(connection: Connection, tables: Tables) -> None:
    table = tables.sketch_segment
    packed = connection.execute(select(table.c.packed).where(table.c.piece == 3)).scalar_one()
    connection.execute(update(table).where(table.c.piece == 3).values(packed=bytes(packed)[:50]))


def change_a_size(connection: Connection, tables: Tables) -> None:
    table = tables.sketch_segment
    sizes = bytes(connection.execute(select(table.c.packed).where(table.c.piece == -1)).scalar_one())
    place = next(i for i, size in enumerate(sizes) if size)
    changed = sizes[:place] + bytes([sizes[place] + 1]) + sizes[place + 1 :]
    connection.execute(update(table).where(table.c.piece == -1).values(packed=changed))


def edit_the_users_row(connection: Connection, tables: Tables) -> None:  # noqa: ARG001
    first = connection.execute(select(petitions_table.c.id).limit(1)).scalar_one()
    change = update(petitions_table).where(petitions_table.c.id == first)
    connection.execute(
        change.values(content="这一行的内容在扫描以后换成了完全不同的一段话，谁也没有告诉我们。")
    )


ROWS = "1 row is not stored as it is now"
DAMAGES = {
    "a pair lost": Damage(lose_a_pair, "1 pair gained"),
    "a pair invented": Damage(invent_a_pair, "1 pair lost"),
    "a pair turned round": Damage(turn_a_pair, "1 pair gained"),
    "a pair with nobody": Damage(pair_with_nobody, "no row has the id 999999"),
    "another distance": Damage(change_pair(distance=9), "1 pair with another distance or similarity"),
    "another similarity": Damage(change_pair(similarity=0.99), "1 pair with another distance or similarity"),
    "no similarity": Damage(change_pair(similarity=None), "1 pair with another distance or similarity"),
    "a member in no group": Damage(change_row("member", group_id=None), "1 group not the same in both"),
    "a group of nobody": Damage(change_row("member", group_id=999_999), "no row has the id 999999"),
    "a group not loose": Damage(
        change_row("representative", is_loose=None, group_size=77), "1 group not the same"
    ),
    "a group abridged": Damage(
        change_row("representative", is_abridged=True), "1 group not the same in both"
    ),
    "a group of another size": Damage(change_row("representative", group_size=77), "1 group not the same"),
    "a copy of nobody": Damage(change_row("alone", copy_of=999_999), "no row has the id 999999"),
    "a copy of none": Damage(change_row("copy", copy_of=None), "1 pair gained"),
    "another fingerprint": Damage(swap_fingerprints, "2 rows are not stored as they are now"),
    "no fingerprint": Damage(change_row("alone", fingerprint=None), ROWS),
    "another digest": Damage(change_row("alone", digest=b"0123456789abcdef"), ROWS),
    "another order": Damage(change_row("alone", order_value="1999"), ROWS),
    "another sketch": Damage(change_row("alone", sketch=bytes(256)), ROWS),
    "a row lost": Damage(lose_a_row, ROWS),
    "a row invented": Damage(invent_a_row, ROWS),
    "a piece of the index lost": Damage(lose_a_piece, "entries in the index of sketches instead of"),
    "an entry too many": Damage(invent_an_entry, "entries in the index of sketches instead of"),
    "a piece of the index changed": Damage(change_a_piece, "not stored as"),
    "a piece of the index cut": Damage(cut_a_piece, "the stored index of sketches is damaged"),
    "a size beside the index changed": Damage(change_a_size, "the stored index of sketches is damaged"),
    "the user's row changed": Damage(edit_the_users_row, ROWS),
}


def scanned(petitions: Database) -> Deduplicator:
    succeed("upgrade")
    succeed("scan", "petitions")
    return by_settings(petitions)


@pytest.mark.parametrize("name", quick_first(DAMAGES))
@pytest.mark.usefixtures("scanned")
def test_a_damaged_answer(sqlite_database: Database, name: str) -> None:
    assert_damage_is_found_and_mended(by_settings(sqlite_database), DAMAGES[name])


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "mysql"], indirect=True)
def test_damaged_answers_on_the_servers(petitions: Database) -> None:
    dedup = scanned(petitions)
    assert run("verify", "petitions").exit_code == 0
    for name, damage in DAMAGES.items():
        try:
            assert_damage_is_found_and_mended(dedup, damage)
        except Exception as error:
            error.add_note(name)
            raise


def assert_damage_is_found_and_mended(dedup: Deduplicator, damage: Damage) -> None:
    with dedup.database.engine.begin() as connection:
        damage.harm(connection, dedup.database.tables)
    told = run("verify", "petitions")
    assert told.exit_code == 1
    assert damage.says in told.stdout + told.stderr
    mend(told)
    assert succeed("verify", "petitions").stderr.endswith(
        "petitions: the answer is what a fresh full scan gives\n"
    )
    assert answer(dedup) == fresh_answer(dedup)


def assert_differs(says: str) -> Result:
    told, in_json = run("verify", "petitions"), run("verify", "petitions", "--json")
    assert told.exit_code == in_json.exit_code == 1
    assert says in told.stdout + told.stderr
    assert in_json.json()["is_right"] is False
    return told


def mend(told: Result) -> None:
    """Run what it says, in backticks; more than once where there is more than one remedy."""
    commands = list(dict.fromkeys(re.findall(r"`db-dedup ([^`]+)`", told.stderr)))
    assert commands
    for command in commands:
        succeed(*shlex.split(command))


def execute(database: Database, statement: str) -> None:
    with database.engine.begin() as connection:
        connection.execute(text(statement))


DRIFTS = {
    "its view dropped": ("DROP VIEW {own}", "duplicates_of_petitions is missing"),
    "its view made by hand": (
        "DROP VIEW {own}; CREATE VIEW {own} AS SELECT 1 AS group_id",
        "duplicates_of_petitions is not as it was made",
    ),
    "a column more": (
        "ALTER TABLE petitions ADD COLUMN remark VARCHAR(20)",
        "or the table has changed since",
    ),
    "the pairs' view dropped": ("DROP VIEW {duplicate_pairs}", "duplicate_pairs is missing"),
    "the members' view dropped": ("DROP VIEW {duplicate_members}", "duplicate_members is missing"),
}


@pytest.mark.parametrize("name", quick_first(DRIFTS))
def test_drift(petitions: Database, name: str) -> None:
    scanned(petitions)
    statements, says = DRIFTS[name]
    names = {base: view(petitions, base) for base in ("duplicate_pairs", "duplicate_members")}
    own = view(petitions, "duplicates_of_petitions")
    for statement in statements.format(own=own, **names).split(";"):
        execute(petitions, statement)
    told = assert_differs(says)
    assert "the answer is what a fresh full scan gives" in told.stderr
    mend(told)
    succeed("verify", "petitions")
    dedup = by_settings(petitions)
    assert answer(dedup) == fresh_answer(dedup)
    execute(petitions, f"SELECT group_size FROM {own}")


def test_a_fixed_view_that_somebody_replaced(petitions: Database) -> None:
    scanned(petitions)
    name, groups = view(petitions, "duplicate_pairs"), view(petitions, "duplicate_groups")
    execute(petitions, f"DROP VIEW {name}")
    execute(petitions, f"CREATE VIEW {name} AS SELECT * FROM {groups}")
    told = assert_differs("duplicate_pairs is not as it was made: drop it, and")
    execute(petitions, f"DROP VIEW {name}")
    mend(told)
    succeed("verify", "petitions")


def test_the_search_path_is_no_drift(postgresql_database: Database) -> None:
    """PostgreSQL tells a view with or without schemas, as the session would find its tables."""
    execute(postgresql_database, "CREATE TABLE petitions (id INT PRIMARY KEY, title TEXT)")
    dedup = Deduplicator(postgresql_database.engine, "petitions", {"title": 1})
    dedup.upgrade()
    dedup.scan()
    elsewhere = make_url(postgresql_database.url).update_query_dict({"options": "-csearch_path=dedup,public"})
    with closing(Deduplicator(elsewhere, "petitions").database) as database:
        with database.engine.connect() as connection:
            assert connection.scalar(text("SHOW search_path")) == "dedup,public"
        assert Deduplicator(database, "petitions").verify().is_right


def test_one_of_our_tables_is_gone(petitions: Database) -> None:
    succeed("upgrade")
    succeed("scan", "petitions")
    execute(
        petitions,
        f"DROP TABLE {view(petitions, 'dead_change')}"
        + (" CASCADE" if petitions.name == "postgresql" else ""),
    )
    error = fail("verify", "petitions")
    assert error.exit_code == 1
    assert "dead_change is missing: `db-dedup uninstall`" in str(error)
    succeed("uninstall", "--yes")
    succeed("upgrade")
    succeed("scan", "petitions")
    succeed("verify", "petitions")


def test_our_tables_are_of_another_revision(petitions: Database) -> None:
    scanned(petitions)
    execute(petitions, f"UPDATE {view(petitions, 'alembic_version')} SET version_num = '0000'")
    error = fail("verify", "petitions")
    assert error.exit_code == 1
    assert "are of revision 0000" in str(error)


def test_a_table_that_was_never_scanned(sqlite_petitions: Database) -> None:
    assert sqlite_petitions.name == "sqlite"
    assert "db-dedup upgrade" in str(fail("verify", "petitions"))
    succeed("upgrade")
    assert "has not been scanned yet" in str(fail("verify", "petitions"))


def test_verify_writes_nothing(petitions: Database) -> None:
    dedup = scanned(petitions)
    stored = dump(dedup, volatile=True)
    assert dedup.verify().is_right
    assert dump(dedup, volatile=True) == stored
