"""The demo keeps what it promises, on servers of its own, without a terminal."""

import json
from pathlib import Path

from tests.acceptance.conftest import Horolog


def test_the_demo_shows_every_kind_of_job_and_ends_with_its_account(
    clean_environment: dict[str, str], tmp_path: Path
) -> None:
    demo = Horolog(clean_environment, tmp_path)("demo", "--seconds", "4", "--json")
    lines = [json.loads(line) for line in demo.out.splitlines()]
    events, summary = lines[:-1], lines[-1]

    assert summary["violations"] == 0
    assert summary["dead_letters"] == 1
    assert summary["cancelled"] == 1
    assert summary["retried"] >= 2
    assert summary["unfinished"] == 0
    assert summary["succeeded"] == summary["occurrences"] - 1
    assert summary["events"] >= len(events)

    jobs = {e["data"]["key"]: e["stream"] for e in events if e["topic"] == "job.registered.1"}
    claimed = {
        e["stream"]: e["data"]["job_id"] for e in events if e["topic"] == "occurrence.claimed.1"
    }
    attempted = {claimed[e["stream"]] for e in events if e["topic"] == "occurrence.attempted.1"}
    assert jobs["cancelled"] not in attempted
    assert {jobs[key] for key in ("one-off", "cron", "interval", "flaky", "poison")} <= attempted
    assert list(tmp_path.iterdir()) == []


def test_a_namespace_that_is_in_use_is_refused(horolog: Horolog) -> None:
    horolog("job", "register", "echo", "--every", "86400")
    refused = horolog("demo", "--seconds", "3", status=1)
    assert "holds events already" in refused.err
