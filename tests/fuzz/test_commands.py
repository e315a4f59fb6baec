"""Commands with arguments that nobody meant: an answer or a refusal, and a log in order."""

import math
import secrets
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.conftest import fuzzed, refusal

from horolog import Every, Once, Retry, Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.cli.main import run
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log

ODD = st.sampled_from(
    [None, -1, 0, 1, 2**31, 2**63, -0.5, math.inf, math.nan, "", "x", "\x00", "\ud800", "a" * 5000]
)
VALUES: Any = st.recursive(
    ODD | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(
        ["payload", "key", "queue", "priority", "timeout", "overlap", "overlap_max", "catch_up",
         "catch_up_window", "catch_up_rate", "concurrency_key", "concurrency_limit", "rate_limit",
         "on_unknown", "start_within", "finish_within", "expect_success_by", "owner", "labels",
         "reason"]
    ),
    VALUES,
    max_size=3,
)  # fmt: skip
FAR = Once(datetime.now(UTC) + timedelta(days=3000))


@pytest.fixture(scope="module")
def place(servers: Any) -> Generator[Settings]:
    found = servers.find()
    namespace = f"t_{secrets.token_hex(5)}"
    database = Database(found.database_url, namespace)
    migrate(database)
    database.close()
    settings = Settings.read(found.database_url, namespace=namespace, environment={})
    yield settings
    report = verify_log(settings)
    assert report.ok, report.violations


@pytest.fixture(scope="module")
def scheduler(place: Settings) -> Generator[Scheduler]:
    with Scheduler(settings=place) as client:
        yield client


@given(st.text(max_size=20) | ODD, ARGUMENTS)
@fuzzed
def test_a_job_is_registered_or_refused(
    scheduler: Scheduler, name: Any, arguments: dict[str, Any]
) -> None:
    def registered() -> None:
        job = scheduler.register(name, schedule=FAR, **arguments)
        assert scheduler.job(job.id).id == job.id

    refusal(registered)


CHANGES = {
    "pause": ["expected_version", "reason"],
    "resume": ["expected_version", "reason", "catch_up"],
    "trigger": ["at", "request_id", "reason"],
    "reschedule": ["schedule", "expected_version", "reason"],
    "update": ["expected_version", "reason", "payload", "labels", "owner", "queue", "retry"],
    "backfill": ["start", "end", "reprocess", "rate", "request_id"],
    "upcoming": ["n"],
}
ASKING = {
    "jobs": ["status", "name", "label", "after", "limit"],
    "occurrences": ["job_id", "state", "since", "until", "after", "limit"],
    "history": ["after", "limit"],
    "log": ["after", "topics", "limit"],
    "dead_letters": ["owner", "name", "after", "limit"],
    "due_at": ["instant", "limit"],
    "executions": ["since", "until", "limit"],
}


@given(st.data())
@fuzzed
def test_a_change_is_made_or_refused(scheduler: Scheduler, data: st.DataObject) -> None:
    job = scheduler.register("ping", schedule=FAR, key="changed", replace=True)
    command = data.draw(st.sampled_from(sorted(CHANGES)))
    names = data.draw(st.lists(st.sampled_from(CHANGES[command]), unique=True))
    arguments = {name: data.draw(VALUES) for name in names}
    for needed in {"reschedule": ["schedule"], "backfill": ["start", "end"], "upcoming": ["n"]}.get(
        command, []
    ):
        arguments.setdefault(needed, data.draw(VALUES))
    refusal(lambda: getattr(scheduler, command)(job.id, **arguments))


@given(st.data())
@fuzzed
def test_a_question_is_answered_or_refused(scheduler: Scheduler, data: st.DataObject) -> None:
    question = data.draw(st.sampled_from(sorted(ASKING)))
    names = data.draw(st.lists(st.sampled_from(ASKING[question]), unique=True))
    arguments = {name: data.draw(VALUES) for name in names}
    if question == "due_at":
        arguments.setdefault("instant", data.draw(VALUES))
    if question == "history":
        job = scheduler.register("ping", schedule=FAR, key="changed", replace=True)
        refusal(lambda: list(scheduler.history(job.id, **arguments)))
    else:
        refusal(lambda: list(getattr(scheduler, question)(**arguments)))


@given(ODD, ODD, ODD, ODD)
@fuzzed
def test_a_policy_is_good_or_refused(base: Any, factor: Any, cap: Any, attempts: Any) -> None:
    refusal(lambda: Retry(base=base, factor=factor, cap=cap, max_attempts=attempts))


@given(
    st.sampled_from(["job", "pause", "resume", "cancel", "trigger", "upcoming", "occurrence",
                     "history", "changes", "explain", "replay", "discard"]),
    st.text(max_size=40) | ODD | st.uuids(),
)  # fmt: skip
@fuzzed
def test_what_does_not_exist_is_refused(scheduler: Scheduler, command: str, name: Any) -> None:
    arguments = {"replay": {"reason": "x"}, "discard": {"reason": "x"}}.get(command, {})
    more = [1] if command == "upcoming" else []

    def nothing_comes_back() -> None:
        assert list(getattr(scheduler, command)(name, *more, **arguments)) == []

    refusal(nothing_comes_back)


@given(st.floats() | st.integers(), ODD)
@fuzzed
def test_an_interval_is_good_or_refused(seconds: Any, anchor: Any) -> None:
    refusal(lambda: Every(seconds, anchor=anchor).upcoming(datetime.now(UTC), 2))


WORDS = st.sampled_from(
    ["job", "occurrence", "log", "dead-letters", "schedule", "register", "list", "show", "preview",
     "audit", "runs", "verify", "projection", "queue", "limit", "--every", "--cron", "--zone",
     "--json", "--limit", "--after", "--since", "-n", "--payload", "--help", "--at", "0", "-1", "*",
     "{}", "{", "2027-01-01", "2027-01-01T00:00:00Z", "ping", "\x00", "é"]
) | st.text(max_size=8)  # fmt: skip


@given(st.lists(WORDS, max_size=6))
@fuzzed
def test_a_command_line_ends_with_one_of_its_statuses(place: Settings, words: list[str]) -> None:
    """Those that would go on for ever, or change what is outside, are not among the words."""
    if {"--follow", "--watch"} & set(words):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOROLOG_DATABASE_URL", place.database_url())
        patch.setenv("HOROLOG_NAMESPACE", place.namespace)
        assert run(words) in (0, 1, 2, 3)
