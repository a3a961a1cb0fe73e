"""What only a thorough run needs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

MYSQL = pytest.param("mysql", marks=pytest.mark.thorough)
"""A database among the parameters of a test. It is MariaDB's twin, so that only a thorough run starts it."""


THOROUGH = (
    "api/test_arguments.py::test_a_registry_of",
    "api/test_asyncio.py",
    "api/test_check_many.py",
    "api/test_public_types.py::test_nothing_of_asyncio",
    "api/test_row_keys.py",
    "bad_input/",
    "calibrate/test_command.py",
    "calibrate/test_evidence.py",
    "cli/test_attach.py::test_attach_and",
    "cli/test_attach.py::test_the_sql_that_is_shown",
    "cli/test_attach.py::test_verify_tells",
    "cli/test_check.py::test_a_byte_order",
    "cli/test_check.py::test_a_check_writes_nothing",
    "cli/test_check.py::test_a_file_that_differs",
    "cli/test_check.py::test_a_stored_row",
    "cli/test_demo.py::test_the_demo_runs_twice",
    "cli/test_encodings.py::test_a_command_where",
    "cli/test_errors.py::test_a_table_or_column_that_the_database_does_not_have[mariadb",
    "cli/test_explain.py::test_texts_cannot",
    "cli/test_export.py::test_rows_are_not_collected",
    "cli/test_export.py::test_values_keep",
    "cli/test_export_meanwhile.py",
    "cli/test_file.py::test_a_form_around",
    "cli/test_file.py::test_answers_are",
    "cli/test_file.py::test_columns_and_rule",
    "cli/test_file.py::test_the_same_groups",
    "cli/test_forms.py::test_a_worker",
    "cli/test_frames.py::test_drift",
    "cli/test_frames.py::test_status_shows",
    "cli/test_interrupts.py",
    "cli/test_journey.py::test_the_stored_recipe",
    "cli/test_kinds.py::test_a_change_of_the_kinds",
    "cli/test_kinds.py::test_a_stored_kind",
    "cli/test_kinds.py::test_excluded_kinds",
    "cli/test_kinds.py::test_pairs_have_kinds",
    "cli/test_kinds.py::test_pairs_that_name",
    "cli/test_messages.py::test_a_drained",
    "cli/test_messages.py::test_uninstall",
    "cli/test_pairs.py::test_expand_gives",
    "cli/test_process.py",
    "cli/test_report.py::test_texts_are_shown",
    "cli/test_report.py::test_the_figures",
    "cli/test_review.py::test_a_row_that_is_gone",
    "cli/test_review.py::test_in_a_loose_group",
    "cli/test_review.py::test_pairs_carry_the_texts_in_every_database",
    "cli/test_start.py::test_a_check_loads",
    "cli/test_start.py::test_the_module_of_check",
    "cli/test_worker.py::test_several_tables[",
    "cli/test_worker.py::test_the_queue_is_drained",
    "cli/test_worker.py::test_what_is_given_up",
    "cli/test_worker.py::test_without_a_file",
    "comparison/test_combinations.py::test_distances_rise",
    "comparison/test_combinations.py::test_jaccard_by_hand",
    "comparison/test_combinations.py::test_words_are_cut",
    "comparison/test_command.py",
    "comparison/test_plan.py::test_a_method_without",
    "dialects/test_bulk.py::test_insert",
    "dialects/test_error_translation.py::test_sqlite_file_that_is_locked",
    "dialects/test_key_indexes.py",
    "dialects/test_key_round_trips.py",
    "dialects/test_queue_plan.py",
    "dialects/test_row_keys.py::test_postgresql_types",
    "dialects/test_statement_sizes.py",
    "dialects/test_tls.py",
    "engines/test_counted_runs.py",
    "engines/test_engine_seam.py",
    "engines/test_explanation.py::test_an_abridged_group",
    "engines/test_explanation.py::test_composite_keys",
    "engines/test_explanation.py::test_every_kind",
    "engines/test_explanation.py::test_it_says_what_the_scan_says",
    "engines/test_fingerprint_process.py",
    "engines/test_matching.py::test_all_pairs_of_a_group",
    "engines/test_matching.py::test_hashes_in_many_parts",
    "engines/test_matching.py::test_many_small",
    "engines/test_matching.py::test_rows_of_long_runs",
    "engines/test_matching.py::test_the_answer_does_not_depend",
    "engines/test_paging.py::test_the_answer_is_the_same",
    "engines/test_spark_scan.py",
    "engines/test_spark_sessions.py",
    "flow/test_candidates.py::test_every_pair_once[in buckets-two blocks hot",
    "flow/test_candidates.py::test_every_pair_once[in buckets-uniform",
    "flow/test_candidates.py::test_every_pair_once[in small",
    "flow/test_candidates.py::test_every_pair_once_at_every_depth",
    "flow/test_candidates.py::test_pairs_within_a_class[by pieces",
    "flow/test_candidates.py::test_rows_of_one_label",
    "flow/test_compiled.py",
    "flow/test_feature_sets.py::test_duplicates_are_never_ruled_out_by_sets_of",
    "flow/test_fingerprint_index.py::test_what_is_near",
    "flow/test_frames.py::test_a_recipe_takes",
    "flow/test_frames.py::test_planted_forms",
    "flow/test_frames.py::test_processes_that_run",
    "flow/test_long_texts.py",
    "flow/test_postings.py::test_who_meets",
    "flow/test_posts.py::test_cleaning",
    "flow/test_posts.py::test_no_post",
    "flow/test_reconnection.py::test_bridges",
    "flow/test_segment.py::test_generated",
    "flow/test_short_texts.py::test_all_pairs_of_few_grams",
    "flow/test_short_texts.py::test_similar_short_rows",
    "frames/test_data_frame.py",
    "group_history/test_changes.py::test_a_damaged",
    "group_history/test_changes.py::test_an_earlier",
    "group_history/test_changes.py::test_groups_that_begin",
    "group_history/test_changes.py::test_merged",
    "group_history/test_changes.py::test_split_again",
    "group_history/test_changes.py::test_the_whole",
    "group_history/test_changes.py::test_what_is_rolled",
    "group_history/test_property.py",
    "guest/test_busy_view.py",
    "guest/test_grants.py",
    "guest/test_held_rows.py::test_the_wait_ends",
    "guest/test_names.py",
    "guest/test_read_replica.py",
    "guest/test_rewritten_table.py",
    "guest/test_session.py",
    "guest/test_store_apart.py",
    "guest/test_store_url.py::test_every_command",
    "guest/test_view_aside.py",
    "health/test_late_server.py",
    "health/test_metrics.py",
    "health/test_run.py",
    "health/test_run_without_database.py",
    "health/test_schedule.py",
    "health/test_verify_triggers.py::test_a_trigger_that_is_gone",
    "health/test_verify_triggers.py::test_a_trigger_that_somebody",
    "health/test_verify_triggers.py::test_triggers_as",
    "interrupted/",
    "labels/test_label_command.py::test_an_answer_can_be_undone",
    "labels/test_label_command.py::test_ctrl_d",
    "labels/test_label_command.py::test_what_is_undone",
    "labels/test_switched_recipes.py",
    "labels/test_verdicts.py::test_a_group_that",
    "labels/test_verdicts.py::test_a_scan_leaves",
    "labels/test_verdicts.py::test_it_ends_with",
    "labels/test_verdicts.py::test_the_worker_applies",
    "methods/test_exact.py::test_a_seen",
    "methods/test_features.py::test_feature_codes_take_linear",
    "methods/test_java.py",
    "methods/test_segmenters.py::test_the_product_cuts[jieba-full]",
    "orm/test_defaults.py",
    "orm/test_permissions.py",
    "orm/test_two_sessions.py",
    "package/test_contents.py",
    "package/test_installed.py",
    "scan/test_canonical_rows.py::test_they_are_those_of_the_table[mariadb",
    "scan/test_covered_changes.py",
    "scan/test_downgraded_sets.py",
    "scan/test_downgrades.py",
    "scan/test_frames.py::test_a_list_that_cannot",
    "scan/test_frames.py::test_a_setting",
    "scan/test_frames.py::test_an_interrupted",
    "scan/test_frames.py::test_an_order",
    "scan/test_frames.py::test_labels_are_kept",
    "scan/test_frames.py::test_pairs_of_abridged",
    "scan/test_full_scan.py::test_a_group_past",
    "scan/test_full_scan.py::test_a_large_table",
    "scan/test_full_scan.py::test_a_new_recipe",
    "scan/test_full_scan.py::test_a_rescan_equals",
    "scan/test_full_scan.py::test_down_to",
    "scan/test_full_scan.py::test_within_and_where",
    "scan/test_garbage.py",
    "scan/test_killed_by_drift.py",
    "scan/test_long_grams.py",
    "scan/test_lookup.py",
    "scan/test_put_off_indexes.py",
    "scan/test_segment_lookup.py::test_entries_of_many_rows",
    "scan/test_segment_lookup.py::test_entries_that_are_folded_between",
    "scan/test_segment_lookup.py::test_the_index_finds",
    "scan/test_segments.py::test_a_fold",
    "scan/test_segments.py::test_a_rebuild_of_a_small_table",
    "scan/test_segments.py::test_a_rebuild_replaces",
    "scan/test_segments.py::test_a_rescan_folds",
    "scan/test_segments.py::test_a_scan_that_fails",
    "scan/test_short_transactions.py",
    "scan/test_sketches.py",
    "scan/test_switched_measures.py",
    "scan/test_user_tables.py::test_any_key",
    "scan/test_user_tables.py::test_the_typed",
    "scan/test_writing_ahead.py",
    "schema/test_broken_off.py",
    "schema/test_definitions.py::test_a_newer",
    "schema/test_host.py",
    "schema/test_lower_case.py",
    "schema/test_queue_key.py",
    "schema/test_upgrade_sql.py::test_run_by_hand",
    "schema/test_views.py::test_a_look_up",
    "store/test_session_settings.py",
    "store/test_source_values.py::test_postgresql",
    "test_app.py::test_settings_that_differ",
    "test_app.py::test_the_report_agrees_with_the_views[mariadb",
    "test_app.py::test_the_report_agrees_with_the_views[postgresql",
    "test_benchmark_traces.py::test_figures",
    "test_benchmarks.py",
    "test_docs.py::test_code_runs[docs",
    "test_examples.py::test_alembic_host",
    "test_examples.py::test_every_question_is_printed",
    "test_examples.py::test_sql_over_views",
    "test_examples.py::test_sqlite_file",
    "test_fastapi_example.py",
    "test_papers_benchmarks.py",
    "test_petition_office.py",
    "test_petition_office_runs.py",
    "test_quality_benchmarks.py",
    "test_quickstart.py::test_a_",
    "test_quickstart.py::test_the_commands",
    "test_quickstart.py::test_what_the_pages",
    "test_sample.py::test_independent_petitions",
    "test_sample.py::test_sizes[5000",
    "test_search_benchmarks.py::test_generators",
    "test_search_benchmarks.py::test_long_keys",
    "test_search_benchmarks.py::test_spark_counts",
    "test_servers.py",
    "test_translation.py::test_a_terminal_in_gbk",
    "test_translation.py::test_commands_speak",
    "test_translation.py::test_data_are",
    "test_translation.py::test_help_in_chinese",
    "test_translation.py::test_the_demo",
    "test_translation.py::test_the_steps",
    "triggers/test_changes.py::test_texts_that_a_collation",
    "triggers/test_mariadb.py::test_not_seen",
    "triggers/test_partitions.py::test_a_row_that_moves",
    "triggers/test_partitions.py::test_a_scan_repairs",
    "triggers/test_partitions.py::test_partitions_that",
    "triggers/test_postgresql.py::test_an_altered",
    "triggers/test_postgresql.py::test_columns_without",
    "triggers/test_postgresql.py::test_keys_whose",
    "triggers/test_postgresql_roles.py",
    "triggers/test_property.py",
    "triggers/test_removal.py",
    "triggers/test_stale.py",
    "upgrades/",
    "verify/test_damage.py::test_a_fixed_view",
    "verify/test_damage.py::test_damaged_answers_on_the_servers",
    "verify/test_damage.py::test_drift",
    "verify/test_damage.py::test_one_of_our_tables",
    "verify/test_damage.py::test_the_search_path",
    "verify/test_preview.py",
    "verify/test_waiting.py",
    "web/console/test_accessibility.py",
    "web/console/test_browser.py",
    "web/console/test_cards.py::test_a_card_with_exact",
    "web/console/test_databases.py",
    "web/console/test_pages.py::test_every_row_of",
    "web/console/test_pages.py::test_rows_of_a_group_whose",
    "web/test_answers.py::test_checks_at",
    "web/test_answers.py::test_explanations_at",
    "web/test_answers.py::test_the_same_in_every_database[mariadb",
    "web/test_answers.py::test_the_same_in_every_database[postgresql",
    "web/test_examples.py::test_curl_reserves",
    "web/test_examples.py::test_java",
    "web/test_guard.py::test_a_call_that_takes_too_long",
    "web/test_guard.py::test_with_a_declared",
    "web/test_history.py::test_the_command",
    "web/test_process.py",
    "web/test_raw_requests.py::test_a_client_that_does_not_take",
    "web/test_raw_requests.py::test_a_client_that_sends",
    "web/test_raw_requests.py::test_a_slow_client",
    "web/test_reservations.py::test_of_clients",
    "web/test_reservations.py::test_reservations_by_former",
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

TWINS_IN_TURN = ("schema/", "store/", "triggers/", "worker/")
"""Where a thorough case runs on SQLite, on PostgreSQL and on one of the twins, MariaDB and MySQL, in turn.
Only `dialects` and `upgrades` run on both each time."""

_TURNS = ((IN_TURN, ("mariadb", "postgresql")), (TWINS_IN_TURN, ("mariadb", "mysql")))
"""Folders, and the two servers of which a case there runs on one."""


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
    """Give every second one of the other tests of each file.

    Args:
        names: as above.
        first: an odd number leaves the first one out.
    """
    names = list(names)
    paired = {name for pair in _pairs(names) for name in pair}
    turns: Counter[str] = Counter()
    for name in names:
        if name not in paired:
            file = name.partition("::")[0]
            if (first + turns[file]) % 2:
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
