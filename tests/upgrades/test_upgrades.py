"""Databases of former versions after `upgrade`: nothing is lost, and a scan brings them up to date."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import inspect, select

from db_dedup import Database as App
from db_dedup import Deduplicator
from db_dedup.errors import OutdatedRecipeError
from db_dedup.records import PairLabel
from db_dedup.records.recipe import RECIPE_VERSION
from db_dedup.schema.definitions import FORMAT
from tests.cli.conftest import run, succeed
from tests.servers import Database
from tests.upgrades import office
from tests.upgrades.stored import STORED, load

Loaded = tuple[Database, App]

KEPT = ("verdict", "change", "dead_change", "fingerprint", "pair", "band", "scan")


@pytest.fixture(params=STORED, ids="-".join)
def loaded(request: pytest.FixtureRequest) -> Loaded:
    version, kind = request.param
    database: Database = request.getfixturevalue(f"{kind}_database")
    load(version, kind, database)
    return database, App(database.engine)


@pytest.fixture
def upgraded(loaded: Loaded) -> Loaded:
    loaded[1].upgrade()
    return loaded


LATER = {"nonce", "kind", "contained_id", "other_place", "sketch_size", "feature_set", "form"}


def contents(app: App) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of our tables, without the columns that they got later."""
    found = {}
    with app.engine.connect() as connection:
        for name in KEPT:
            columns = [column for column in getattr(app.tables, name).c if column.name not in LATER]
            found[name] = sorted(map(tuple, connection.execute(select(*columns))), key=repr)
    return found


def definitions(app: App) -> dict[str, dict[str, Any]]:
    table = app.tables.watched_table
    with app.engine.connect() as connection:
        return {
            name: json.loads(text)
            for name, text in connection.execute(select(table.c.name, table.c.definition))
        }


def pairs(dedup: Deduplicator) -> set[tuple[str, str]]:
    return {(pair.key_a, pair.key_b) for pair in dedup.pairs()}


def test_an_upgrade_loses_nothing(loaded: Loaded) -> None:
    _, app = loaded
    before = contents(app)
    app.upgrade()
    assert contents(app) == before
    assert [len(before[name]) for name in ("verdict", "change", "dead_change")] == [2, 3, 1]
    status = {found.table: found for found in app.status()}
    assert (status["petitions"].is_outdated, status["petitions"].recipe_version) == (True, 1)
    assert (status["notices"].is_outdated, status["notices"].recipe_version) == (False, None)
    # Written as before; the scan that the new version asks for makes them anew.
    assert {found.triggers for found in status.values()} == {"stale"}


def test_definitions_are_complete_by_themselves(upgraded: Loaded) -> None:
    found = definitions(upgraded[1])
    rule = {"radius": 3, "term_frequency": "raw", "min_features": 3, "preset": None}
    balanced = {"similarity": "char_overlap", "threshold": 0.5, "stop_words": "keep", "sketches": True}
    strict = {"similarity": "none", "threshold": 0.0, "stop_words": "drop", "sketches": False}
    head = {"format": FORMAT, "recipe_version": 1}
    assert (head | rule | balanced).items() <= found["petitions"].items()
    assert (head | rule | strict).items() <= found["notices"].items()


def test_what_would_compare_with_the_old_answer_is_refused(upgraded: Loaded) -> None:
    database, app = upgraded
    dedup = Deduplicator(app, "petitions")
    uses: list[Callable[[], object]] = [
        dedup.worker().step,
        dedup.worker().is_drained,
        lambda: dedup.check({"title": "a", "content": "b"}),
        lambda: dedup.explain("1", "2"),
        lambda: dedup.labels().questions(1),
        lambda: dedup.labels().give([PairLabel("1", "3", is_duplicate=False)]),
        lambda: dedup.labels().withdraw(*office.REJECTED),
        dedup.calibrate,
        dedup.compare,
        dedup.verify,
        lambda: list(dedup.pairs(expand=True)),
    ]
    for use in uses:
        with pytest.raises(OutdatedRecipeError, match=r"'petitions' .* older .* `db-dedup scan petitions`"):
            use()
    with (
        database.engine.connect() as connection,
        pytest.raises(OutdatedRecipeError, match="scan petitions"),
    ):
        dedup.check({"title": "a", "content": "b"}, connection, block=True)


def test_what_is_stored_is_still_read(upgraded: Loaded) -> None:
    dedup = Deduplicator(upgraded[1], "petitions")
    assert {office.CONFIRMED, office.TWO_LINKS} <= pairs(dedup)
    assert office.REJECTED not in pairs(dedup)
    assert [group.size for group in dedup.groups()] == [2, 2]
    assert len(dedup.labels().stored()) == 2
    preview = dedup.preview()
    assert preview.is_new_recipe
    assert preview.differences is not None


def test_a_scan_brings_it_up_to_date(upgraded: Loaded) -> None:
    _, app = upgraded
    dedup = Deduplicator(app, "petitions")
    dedup.scan()
    assert definitions(app)["petitions"]["recipe_version"] == RECIPE_VERSION
    assert office.REJECTED not in pairs(dedup)
    assert {(frozenset((v.key_a, v.key_b)), v.is_duplicate) for v in dedup.labels().stored()} == {
        (frozenset(office.REJECTED), False),
        (frozenset(office.CONFIRMED), True),
    }
    two_links = [p.similarity for p in dedup.pairs() if (p.key_a, p.key_b) == office.TWO_LINKS]
    assert len(two_links) == 1
    assert two_links[0] is not None
    assert two_links[0] < 1, "other links make another text"
    with app.engine.connect() as connection:
        recipes = connection.execute(select(app.tables.fingerprint.c.recipe).distinct()).all()
    assert len(recipes) == 1, "nothing is left of the old recipe and of the scan that was killed"
    worker = dedup.worker()
    while worker.step():
        pass
    assert worker.is_drained()
    assert [len(found.latest_dead) for found in app.status() if found.table == "petitions"] == [1]
    assert dedup.retry() == 1
    while worker.step():
        pass
    assert dedup.verify().is_right
    assert office.REJECTED not in pairs(dedup)
    assert len(contents(app)["verdict"]) == 2


def test_what_was_never_scanned_is_scanned_by_the_worker(upgraded: Loaded) -> None:
    _, app = upgraded
    dedup = Deduplicator(app, "notices")
    worker = dedup.worker()
    while worker.step():
        pass
    assert dedup.verify().is_right
    assert Deduplicator(app, "notices", **office.NOTICE_SETTINGS).worker().step() is None


@pytest.mark.parametrize("upgrades", [False, True])
def test_uninstall_leaves_the_user_s_tables(loaded: Loaded, upgrades: bool) -> None:
    database, app = loaded
    if upgrades:
        app.upgrade()
        Deduplicator(app, "petitions").scan()
    app.uninstall()
    inspector = inspect(database.engine)
    assert {*inspector.get_table_names(), *inspector.get_view_names()} == {"petitions", "notices"}
    assert "dedup" not in inspector.get_schema_names()
    office.write_again(database.engine)  # a trigger that is left would fail


def test_down_to_the_first_revision_and_up_again(upgraded: Loaded) -> None:
    """The settings come back in a form that the former version reads, and no answer that it cannot judge."""
    _, app = upgraded
    before = definitions(app)
    app.downgrade("0001")
    old = definitions(app)["petitions"]
    assert not {"format", "recipe_version", "sketches"} & old.keys()
    assert old["bands"] is True
    assert (old["preset"], old["similarity"], old["threshold"]) == ("balanced", "char_overlap", 0.5)
    app.upgrade()
    assert definitions(app) == before
    assert {found.table: found.is_scanned for found in app.status()} == {"petitions": True, "notices": False}
    dedup = Deduplicator(app, "petitions")
    dedup.scan()
    app.downgrade("0001")
    app.upgrade()
    assert not any(found.is_scanned for found in app.status())
    dedup.scan()
    assert len(dedup.labels().stored()) == 2
    assert dedup.verify().is_right


def test_the_command_line_says_what_to_do(upgraded: Loaded) -> None:
    url = upgraded[0].url
    told = " ".join(succeed("status", "--url", url).stdout.replace("│", " ").split())
    assert "is_outdated yes" in told
    assert "run `db-dedup scan petitions`" in told
    failed = run("worker", "petitions", "--drain", "--url", url)
    assert failed.exit_code == 1
    assert isinstance(failed.error, OutdatedRecipeError)
    assert "db-dedup scan petitions" in str(failed.error)
