"""What every test can ask for: a fresh, empty database of each kind."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy import URL, Engine, event

from tests.servers import (
    Database,
    Server,
    ServerUnavailableError,
    fresh_database,
    opened,
    start_mariadb,
    start_mysql,
    start_postgresql,
)
from tests.thorough import MYSQL

# A job in the background ignores Ctrl-C, one under nohup SIGHUP, and so would all that they start; the tests
# send both to some.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Of whoever runs the tests: printed tables would be as wide as that terminal.
os.environ.pop("COLUMNS", None)

NOT_TESTED = "NOT TESTED: "

THOROUGH = (
    "api/test_asyncio.py",
    "api/test_check_many.py",
    "api/test_public_types.py::test_nothing_of_asyncio",
    "api/test_row_keys.py",
    "bad_input/",
    "calibrate/test_command.py",
    "calibrate/test_evidence.py",
    "cli/test_attach.py::test_verify_tells",
    "cli/test_check.py::test_a_file_that_differs",
    "cli/test_check.py::test_a_stored_row",
    "cli/test_encodings.py::test_a_command_where",
    "cli/test_export.py::test_rows_are_not_collected",
    "cli/test_file.py::test_columns_and_rule",
    "cli/test_file.py::test_the_same_groups",
    "cli/test_frames.py::test_drift",
    "cli/test_frames.py::test_status_shows",
    "cli/test_interrupts.py",
    "cli/test_kinds.py::test_a_change_of_the_kinds",
    "cli/test_kinds.py::test_excluded_kinds",
    "cli/test_kinds.py::test_pairs_have_kinds",
    "cli/test_pairs.py::test_expand_gives",
    "cli/test_process.py",
    "cli/test_review.py::test_a_row_that_is_gone",
    "cli/test_review.py::test_pairs_carry_the_texts_in_every_database",
    "cli/test_start.py::test_a_check_loads",
    "cli/test_start.py::test_the_module_of_check",
    "comparison/test_command.py",
    "dialects/test_bulk.py::test_insert",
    "dialects/test_error_translation.py::test_sqlite_file_that_is_locked",
    "dialects/test_key_indexes.py",
    "dialects/test_key_round_trips.py",
    "dialects/test_row_keys.py::test_postgresql_types",
    "dialects/test_statement_sizes.py",
    "engines/test_engine_seam.py",
    "engines/test_explanation.py::test_every_kind",
    "engines/test_explanation.py::test_it_says_what_the_scan_says",
    "engines/test_matching.py::test_all_pairs_of_a_group",
    "engines/test_matching.py::test_rows_of_long_runs",
    "engines/test_spark_scan.py",
    "flow/test_candidates.py::test_every_pair_once_at_every_depth",
    "flow/test_compiled.py",
    "flow/test_frames.py::test_a_recipe_takes",
    "flow/test_frames.py::test_planted_forms",
    "flow/test_frames.py::test_processes_that_run",
    "flow/test_long_texts.py",
    "flow/test_posts.py::test_no_post",
    "flow/test_short_texts.py::test_similar_short_rows",
    "frames/test_data_frame.py",
    "group_history/test_property.py",
    "guest/test_busy_view.py",
    "guest/test_grants.py",
    "guest/test_names.py",
    "guest/test_session.py",
    "guest/test_store_apart.py",
    "guest/test_view_aside.py",
    "health/test_late_server.py",
    "health/test_metrics.py",
    "health/test_run.py",
    "health/test_schedule.py",
    "health/test_verify_triggers.py::test_triggers_as",
    "interrupted/",
    "labels/test_switched_recipes.py",
    "labels/test_verdicts.py::test_a_scan_leaves",
    "labels/test_verdicts.py::test_the_worker_applies",
    "methods/test_java.py",
    "methods/test_segmenters.py::test_the_product_cuts[jieba-full]",
    "package/test_installed.py",
    "scan/test_frames.py::test_a_list_that_cannot",
    "scan/test_frames.py::test_a_setting",
    "scan/test_frames.py::test_labels_are_kept",
    "scan/test_frames.py::test_pairs_of_abridged",
    "scan/test_full_scan.py::test_a_group_past",
    "scan/test_full_scan.py::test_a_large_table",
    "scan/test_full_scan.py::test_within_and_where",
    "scan/test_killed_by_drift.py",
    "scan/test_long_grams.py",
    "scan/test_lookup.py",
    "scan/test_pieces.py",
    "scan/test_put_off_indexes.py",
    "scan/test_segments.py::test_a_fold",
    "scan/test_segments.py::test_a_rescan_folds",
    "scan/test_sketches.py",
    "scan/test_user_tables.py::test_any_key",
    "scan/test_writing_ahead.py",
    "schema/test_host.py",
    "schema/test_queue_key.py",
    "schema/test_upgrade_sql.py::test_run_by_hand",
    "schema/test_views.py::test_a_look_up",
    "store/test_session_settings.py::test_postgresql",
    "store/test_source_values.py::test_postgresql",
    "test_benchmarks.py",
    "test_docs.py::test_code_runs[docs",
    "test_examples.py::test_alembic_host",
    "test_examples.py::test_every_question_is_printed",
    "test_examples.py::test_sql_over_views[mariadb",
    "test_examples.py::test_sql_over_views[postgresql",
    "test_examples.py::test_sqlite_file",
    "test_fastapi_example.py",
    "test_first_hour.py::test_a_",
    "test_first_hour.py::test_the_commands",
    "test_first_hour.py::test_what_the_page",
    "test_papers_benchmarks.py",
    "test_petition_office.py",
    "test_petition_office_runs.py",
    "test_quality_benchmarks.py",
    "test_sample.py::test_independent_petitions",
    "test_servers.py",
    "test_translation.py::test_a_terminal_in_gbk",
    "test_translation.py::test_commands_speak",
    "test_translation.py::test_data_are",
    "test_translation.py::test_the_demo",
    "triggers/test_changes.py::test_texts_that_a_collation",
    "triggers/test_mariadb.py::test_not_seen",
    "triggers/test_postgresql.py::test_an_altered",
    "triggers/test_postgresql.py::test_columns_without",
    "triggers/test_postgresql.py::test_keys_whose",
    "triggers/test_postgresql.py::test_namesakes",
    "triggers/test_postgresql.py::test_partitions_that",
    "triggers/test_postgresql_roles.py",
    "triggers/test_property.py",
    "triggers/test_removal.py",
    "triggers/test_stale.py",
    "upgrades/",
    "verify/test_damage.py::test_damaged_answers_on_the_servers",
    "verify/test_damage.py::test_drift",
    "verify/test_damage.py::test_the_search_path",
    "verify/test_preview.py::test_a_dry_run",
    "web/console/test_accessibility.py",
    "web/console/test_browser.py",
    "web/console/test_databases.py",
    "web/test_examples.py::test_curl_reserves",
    "web/test_examples.py::test_java",
    "web/test_guard.py::test_a_call_that_takes_too_long",
    "web/test_process.py::test_it_starts",
    "web/test_process.py::test_only_the_tables",
    "web/test_raw_requests.py::test_a_client_that_does_not_take",
    "web/test_raw_requests.py::test_a_client_that_sends",
    "web/test_raw_requests.py::test_a_slow_client",
    "web/test_reservations.py::test_of_clients_with_small_edits_one_passes[mariadb",
    "web/test_reservations.py::test_of_clients_with_small_edits_one_passes[postgresql",
    "web/test_reservations.py::test_of_clients_with_the_same_record_one_passes[mariadb",
    "web/test_reservations.py::test_of_clients_with_the_same_record_one_passes[postgresql",
    "web/test_tls.py",
    "windows/",
    "worker/",
)
"""What takes minutes: processes that are killed, servers that fail, long random histories. CI runs it all, as
well as the cases that `quick_first` keeps for it."""

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
"""Where `make test` runs one test of each file on each server, and all of them on SQLite."""

TWIN = (
    "api/",
    "bad_input/",
    "cli/",
    "engines/",
    "guest/",
    "health/",
    "interrupted/",
    "labels/",
    "orm/",
    "scan/",
    "verify/",
    "web/",
)
"""Where one test of each file is enough on MySQL, MariaDB's twin. The two differ in their dialects,
and the folders that test these (dialects, schema, store, triggers, worker, upgrades) run on both in full."""

_ON_A_SERVER = 1

settings.register_profile("timeless", deadline=None)  # how long a test takes is no part of what it proves
settings.load_profile("timeless")


@event.listens_for(Engine, "connect")
def no_sync(connection: object, _: object) -> None:
    """SQLite waits for no disk: like the servers' data, nothing here must outlive the machine."""
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.Error):  # it is not a database, or locked: the test will see
            connection.execute("PRAGMA synchronous = OFF").close()


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    yield from _server("postgresql", start_postgresql)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    yield from _server("mariadb", start_mariadb)


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[Server]:
    yield from _server("mysql", start_mysql)


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    url = URL.create("sqlite", database=str(tmp_path / "database.db"))
    with opened("sqlite", url) as database:
        yield database


@pytest.fixture
def postgresql_database(postgresql_server: Server) -> Iterator[Database]:
    with fresh_database(postgresql_server) as database:
        yield database


@pytest.fixture
def mariadb_database(mariadb_server: Server) -> Iterator[Database]:
    with fresh_database(mariadb_server) as database:
        yield database


@pytest.fixture
def mysql_database(mysql_server: Server) -> Iterator[Database]:
    with fresh_database(mysql_server) as database:
        yield database


@pytest.fixture(params=["mariadb", MYSQL])
def mariadb_or_mysql(request: pytest.FixtureRequest) -> Database:
    """The same test on both, for what they have in common and others have not."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture(params=["sqlite", "postgresql", "mariadb", MYSQL])
def database(request: pytest.FixtureRequest) -> Database:
    """The same test on each kind of database in turn."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


def _server(name: str, start: Callable[[], Server]) -> Iterator[Server]:
    url = os.environ.get(f"DB_DEDUP_TEST_{name.upper()}_URL")
    return private_server(name, (lambda: Server.elsewhere(name, url)) if url else start)


def private_server(name: str, start: Callable[[], Server]) -> Iterator[Server]:
    """What a fixture yields: a server, stopped at the end; without one its tests are skipped aloud."""
    try:
        server = start()
    except ServerUnavailableError as error:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(f"{NOT_TESTED}{name} ({error})")
    try:
        yield server
    finally:
        server.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to CI, and leave out what a twin's test proves."""
    _leave_out_twins(config, items)
    kept: Counter[tuple[str, str]] = Counter()
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        server = re.search(r"postgresql|mariadb", name.partition("[")[2])
        if name.startswith(THOROUGH):
            item.add_marker("thorough")
        elif server and name.startswith(SPARING):
            place = name.partition("::")[0], server[0]
            if kept[place] == _ON_A_SERVER:
                item.add_marker("thorough")
            else:
                kept[place] += 1


def _leave_out_twins(config: pytest.Config, items: list[pytest.Item]) -> None:
    seen: set[str] = set()
    left_out = []
    for item in items:
        file, _, case = item.nodeid.removeprefix("tests/").partition("::")
        if file.startswith(TWIN) and "mysql" in case.partition("[")[2]:
            if file in seen:
                left_out.append(item)
            seen.add(file)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say last of all, on one line for each, which databases could not be had."""
    yield
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    }
    for reason in sorted(reason for reason in reasons if reason.startswith(NOT_TESTED)):
        terminalreporter.write_line(reason, red=True, bold=True)
