"""`horolog projection` beside a real scanner and a real worker."""

from datetime import UTC, datetime, timedelta

from tests.acceptance.conftest import Horolog, eventually

from horolog import Every, Once, Retry, Scheduler

NAMES = ["next_runs", "jobs", "executions", "dead_letters", "partitions"]


def test_what_a_running_system_wrote_is_what_the_log_says(
    horolog: Horolog, scheduler: Scheduler
) -> None:
    horolog.start_scanner_and_worker()
    fast = Retry(base=0.05, jitter=0.0, max_attempts=3)
    for n in range(3):
        scheduler.register("ping", schedule=Every(1), key=f"ping-{n}")
    scheduler.register("flaky", schedule=Every(1), retry=fast)
    scheduler.register("poison", schedule=Every(2), retry=fast)
    scheduler.register("sleep", schedule=Every(2), payload={"seconds": 5}, overlap="skip")
    scheduler.register("ping", schedule=Once(datetime.now(UTC) + timedelta(seconds=1)))
    paused = scheduler.register("ping", schedule=Every(1))
    scheduler.trigger(paused.id)
    scheduler.pause(paused.id)
    eventually(lambda: list(scheduler.dead_letters()))
    found = horolog("projection", "verify", "--json").json
    assert found["differences"] == []
    assert found["projections"] == NAMES
    assert found["events"] > 20
    rebuilt = horolog("projection", "rebuild", "--reason", "a drill", "--json").json
    assert rebuilt["differences"] == []
    assert rebuilt["exchanged"]
    seen = horolog.verify()["succeeded"]
    eventually(lambda: horolog.verify()["succeeded"] > seen + 5)
    assert horolog("projection", "rollback", "--json").json["exchanged"]
    assert horolog("projection", "verify", "--json").json["differences"] == []
    status = horolog("projection", "status", "--json").json
    assert [run["state"] for run in status["runs"]] == ["dropped", "rolled_back", "dropped"]
    assert status["runs"][1]["reason"] == "a drill"
    assert "next_runs" in horolog("projection", "status").out


def test_an_unknown_projection_is_wrong_usage(horolog: Horolog) -> None:
    answer = horolog.within("projection", "verify", "nextruns", status=2)
    assert "there is no projection 'nextruns': next_runs, jobs" in answer.err
