"""Cases taken from public bug reports about workers and the ready queue, and the tests that hold
them: each is there, by name. (Those about time are data: tests/domain/schedule/cases.)"""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CASES: dict[str, list[tuple[str, str]]] = {
    "S24 orphaned after kill": [
        ("faults/worker/test_worker_crashes.py",
         "test_a_worker_killed_in_the_middle_of_a_batch_costs_time_only"),
        ("faults/scanner/test_crashes.py",
         "test_a_run_whose_worker_fell_silent_is_lost_and_tried_again"),
        ("faults/kill_points/test_kill_points.py",
         "test_a_process_killed_there_costs_time_and_no_effect"),
    ],
    "S26 healthy work taken over": [
        ("application/worker/test_reported_cases.py",
         "test_extensions_go_on_through_a_stop_until_the_last_run_has_ended"),
        ("faults/worker/test_reported_cases.py",
         "test_a_run_outlasts_its_ack_wait_and_the_stop_of_its_worker_beside_an_idle_one"),
        ("faults/worker/test_worker_on_servers.py",
         "test_a_long_run_keeps_its_lease_though_it_blocks_the_loop"),
    ],
    "S28 poison job kills its worker without being counted": [
        ("faults/worker/test_worker_crashes.py",
         "test_a_run_that_takes_its_process_with_it_ends_among_the_dead_letters"),
        ("infrastructure/handler_processes/test_handler_processes.py",
         "test_results_failures_and_deaths_are_outcomes_and_the_worker_lives_on"),
    ],
    "S30 characters the database cannot store": [
        ("faults/worker/test_worker_on_servers.py",
         "test_an_error_that_postgres_cannot_store_ends_its_run_all_the_same"),
        ("application/worker/test_running.py",
         "test_text_that_cannot_be_stored_is_made_storable"),
    ],
    "S31 acknowledged message gone after a crash": [
        ("faults/scanner/test_queue_losses.py",
         "test_a_store_directory_that_is_gone_costs_only_time"),
        ("faults/scanner/test_queue_losses.py",
         "test_messages_that_vanished_are_published_again_when_their_window_ends"),
    ],
    "S33 consumer deleted, worker polls into the void": [
        ("faults/worker/test_worker_on_servers.py",
         "test_a_deleted_consumer_or_stream_is_made_again"),
        ("faults/whole/test_servers.py", "test_an_operator_deletes_the_consumer_and_the_stream"),
    ],
    "S35 publish timed out: stored or not": [
        ("application/scanner/test_publishing.py",
         "test_a_time_out_is_repeated_as_it_was_under_the_same_id"),
        ("faults/whole/test_servers.py", "test_nats_is_stopped_and_killed_and_started_again"),
    ],
    "S37 duplicate window swallows a wanted retry": [
        ("application/scanner/test_publishing.py",
         "test_a_duplicate_that_the_queue_does_not_hold_goes_out_under_another_id"),
        ("acceptance/test_lifecycle.py", "test_a_dead_letter_is_found_replayed_and_discarded"),
    ],
    "S39 stream full": [
        ("faults/scanner/test_queue_losses.py",
         "test_a_full_stream_holds_claims_back_and_takes_them_when_there_is_room"),
        ("application/scanner/test_publishing.py",
         "test_a_full_queue_is_tried_with_one_message_at_growing_pauses"),
    ],
    "S41 in-flight limit reached, delivery stops": [
        ("application/worker/test_reported_cases.py",
         "test_runs_that_hang_for_ever_give_their_slots_back_to_quick_ones"),
        ("faults/worker/test_reported_cases.py",
         "test_runs_that_hang_in_all_that_the_queue_hands_out_end_and_the_next_go_on"),
        (
            "application/test_diagnosis.py",
            "test_a_queue_that_hands_out_nothing_more_is_told",
        ),
    ],
    "S43 late ack from the first worker": [
        ("application/worker/test_reported_cases.py",
         "test_a_late_acknowledgement_leaves_the_run_of_the_other_worker_to_be_driven_on"),
        ("faults/worker/test_reported_cases.py",
         "test_the_late_acknowledgement_of_a_stopped_worker_leaves_the_run_of_the_next_to_the_log"),
        ("faults/worker/test_worker_crashes.py", "test_a_zombie_s_late_outcome_is_refused"),
    ],
    "S60 waiting counted as running": [
        ("application/worker/test_running.py",
         "test_a_timeout_counts_from_the_start_and_is_tried_again"),
        ("application/worker/test_worker.py",
         "test_no_more_than_the_slots_run_at_once_and_the_rest_is_not_attempted"),
    ],
}  # fmt: skip


@cache
def names_of(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    found = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {node.name for node in found}


@pytest.mark.parametrize("case", CASES)
def test_a_reported_fault_has_its_test(case: str) -> None:
    for file, name in CASES[case]:
        assert name in names_of(file), f"{case}: {file} has no {name}"
