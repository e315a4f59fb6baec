"""Limits and metrics by the command line."""

from tests.acceptance.conftest import Horolog, eventually

from horolog import Scheduler


def test_a_queue_is_limited_listed_and_set_free(horolog: Horolog) -> None:
    assert horolog("queue", "list").out.strip() == "no queue has a limit"
    told = horolog("queue", "limit", "mail", "20", "--rate", "5").out
    assert told.strip() == "queue mail: at most 20 at once, at most 5 a second"
    (listed,) = horolog("queue", "list", "--json").json
    assert (listed["queue"], listed["limit"], listed["rate"]) == ("mail", 20, 5)
    assert horolog("queue", "limit", "mail", "--none", "--json").json["limit"] is None
    assert horolog("queue", "list", "--json").json == []


def test_a_limit_that_cannot_be_is_refused_in_one_line(horolog: Horolog) -> None:
    for arguments, status, words in (
        (["mail"], 2, "give N, --rate or both"),
        (["mail", "3", "--none"], 2, "--none"),
        (["mail", "0"], 1, "limit=0"),
        (["mail", "--rate", "nan"], 1, "rate=nan"),
        (["a b", "1"], 1, "queue='a b'"),
    ):
        answer = horolog("queue", "limit", *arguments, status=status)
        assert words in answer.err
        assert len(answer.err.splitlines()) == 1


def test_metrics_tell_lateness_and_leases_of_a_running_system(
    horolog: Horolog, scheduler: Scheduler
) -> None:
    horolog.start_scanner_and_worker()
    horolog("job", "register", "ping", "--in", "0")
    eventually(lambda: len(scheduler.occurrences(state="succeeded")) == 1)
    text = horolog("metrics").out
    assert 'horolog_up{service="postgres"} 1' in text
    assert 'horolog_lateness_samples{stage="claim"} 1' in text
    assert 'horolog_lateness_samples{stage="start"} 1' in text
    assert "horolog_partitions_unowned 0" in text
    assert 'horolog_queue_waiting{queue="default"} 0' in text
    assert horolog("metrics", "--json").json["store"]["claims_late"]["count"] == 1
