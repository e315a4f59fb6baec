"""A few of the points of `make kill-points`, on the suite's servers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

POINTS = ["in the handler, after its effect", "after outcome is appended"]


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_there_costs_time_and_no_effect(
    point: str, database_url: str, nats_url: str
) -> None:
    environment = os.environ | {"HOROLOG_DATABASE_URL": database_url, "HOROLOG_NATS_URL": nats_url}
    program = Path(__file__).with_name("run.py")
    done = subprocess.run(
        [sys.executable, str(program), "--json", "--point", point],
        env=environment,
        capture_output=True,
        text=True,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == 4, done.stderr
    assert all(outcome["right"] for outcome in outcomes), outcomes
