"""Subjects in simulated time: the same as in production, without a server or a master key."""

from collections.abc import Generator
from typing import Any

import pytest

from horolog import Every, InvalidPayload, InvalidPolicy, Run, SubjectForgotten, Worker
from horolog.testing import SimulatedScheduler

CARD = {"card": "canary-4111"}


@pytest.fixture(params=[False, True], ids=["veiled", "revealed"])
def scheduler(request: pytest.FixtureRequest) -> Generator[SimulatedScheduler]:
    worker = Worker()

    @worker.handles("pay")
    def _(run: Run, card: str) -> dict[str, Any]:
        return {"charged": card, "before": run.last_result}

    @worker.handles("fail")
    def _(run: Run, card: str) -> None:
        raise ValueError(f"no such card: {card}")

    with SimulatedScheduler(worker, reveal=request.param) as simulated:
        yield simulated


def test_runs_of_a_subject_see_their_data_and_answers_show_it_to_who_asks(
    scheduler: SimulatedScheduler,
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    failing = scheduler.register("fail", schedule=Every(60), payload=CARD, subject="ann")
    scheduler.advance(minutes=2)
    runs = scheduler.occurrences(job_id=job.id, state="succeeded")
    (letter, *_) = scheduler.dead_letters()
    if scheduler.reveal:
        first = {"charged": "canary-4111", "before": None}
        assert job.payload == CARD
        assert runs[0].result == first
        assert runs[1].result == {"charged": "canary-4111", "before": first}
        assert letter.error == "ValueError: no such card: canary-4111"
    else:
        assert job.payload == {"$sealed": True}
        assert {str(run.result) for run in runs} == {"{'$sealed': True}"}
        assert letter.error == "(sealed)"
    events = [event.state for event in scheduler._memory.tables.events]  # pyright: ignore[reportPrivateUsage]
    assert not any(b"canary" in state for state in events)
    assert failing.subject == "ann"


def test_a_forgotten_subject_runs_no_more(scheduler: SimulatedScheduler) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann", key="a")
    other = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="bob")
    scheduler.advance(minutes=2)
    done = scheduler.forget("ann", reason="she asked to")
    assert (done.already, done.jobs_cancelled) == (False, 1)
    ran = len(scheduler.occurrences(job_id=job.id))
    scheduler.advance(minutes=5)
    assert len(scheduler.occurrences(job_id=job.id)) == ran
    assert len(scheduler.occurrences(job_id=other.id, state="succeeded")) > ran
    assert scheduler.job(job.id).payload == {"$erased": True}
    assert {str(run.result) for run in scheduler.occurrences(job_id=job.id)} == {
        "{'$erased': True}"
    }
    with pytest.raises(SubjectForgotten):
        scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    assert scheduler.verify().ok


@pytest.mark.parametrize("subject", ["", "x" * 257, "nul\0", "\ud800", 7])
def test_what_can_be_no_subject_is_refused(scheduler: SimulatedScheduler, subject: Any) -> None:
    with pytest.raises(InvalidPolicy, match="a subject is text"):
        scheduler.register("pay", schedule=Every(60), subject=subject)
    with pytest.raises(InvalidPolicy, match="a subject is text"):
        scheduler.forget(subject)


@pytest.mark.parametrize("name", ["$sealed", "$erased"])
def test_a_payload_cannot_pretend_to_be_sealed(scheduler: SimulatedScheduler, name: str) -> None:
    with pytest.raises(InvalidPayload, match="for themselves"):
        scheduler.register("pay", schedule=Every(60), payload={name: "v1.x"})


def test_a_subject_is_chosen_at_registration_for_good(scheduler: SimulatedScheduler) -> None:
    job = scheduler.register("pay", schedule=Every(60))
    with pytest.raises(InvalidPolicy, match="no policy"):
        scheduler.update(job.id, subject="ann")  # pyright: ignore[reportCallIssue]
