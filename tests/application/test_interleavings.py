"""Whoever acts on whatever it once saw: the log takes only what keeps the promises.

Two leaders, workers and people each decide from a state of one occurrence that may be long past: a
redelivered message, the outcome of a worker that was stopped, a replay that was clicked twice, a
leader that was deposed. What the real deciders answer goes to the log (the one in memory, which
passes the tests of Postgres's, with its guards and fences). Then `verify`, which shares no code
with the deciders, reads all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.application.decision import (
    decide_on_fires,
    decide_on_job,
    decide_on_occurrence,
    decide_on_partition,
)
from horolog.application.log import Fences
from horolog.application.verify import verify
from horolog.domain.definition import JobDefinition
from horolog.domain.errors import NotAllowed
from horolog.domain.ids import occurrence_id, partition_stream
from horolog.domain.job import decide_registration
from horolog.domain.job_events import Completed
from horolog.domain.occurrence import (
    OccurrenceState,
    decide_cancel,
    decide_claim,
    decide_discard,
    decide_failure,
    decide_loss,
    decide_recall,
    decide_replay,
    decide_skip,
    decide_snooze,
    decide_stopped,
    decide_unknown,
    ordered,
)
from horolog.domain.occurrence_events import Attempted, OccurrenceEvent, Succeeded
from horolog.domain.origin import Origin
from horolog.domain.partition import PartitionState, decide_election
from horolog.domain.retry import Retry
from horolog.domain.schedule import Once
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.log_scan import SimulatedLogScan

START = datetime(2027, 1, 1, tzinfo=UTC)
RETRY = Retry(max_attempts=3, base=1.0, jitter=0.0)
ME = Origin("tester")
JOB, PARTITION = UUID(int=7 << 64), 3


@dataclass
class World:
    """One occurrence; ``seen`` is every state that it ever had, ``tokens`` every term."""

    now: datetime = START
    seen: list[OccurrenceState] = field(default_factory=list[OccurrenceState])
    tokens: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def __post_init__(self) -> None:
        self.log = SimulatedLog(lambda: self.now)
        self.led = PartitionState(partition_stream("simulated", PARTITION), PARTITION)
        self.elect()
        definition = JobDefinition(name="work", schedule=Once(START).to_json(), retry=RETRY)
        events = decide_registration(
            definition, partition=PARTITION, key=None, now=START - timedelta(1), origin=ME
        )
        decision, self.job = decide_on_job(None, JOB, events)
        assert self.log.append([decision]).verdicts == ["accepted"]
        self.fire()

    def elect(self) -> None:
        """Another leader, when the lease of the one before has ended."""
        self.now += timedelta(seconds=11)
        instance = f"leader {len(self.tokens)}"
        events = [decide_election(self.led, instance, 10.0, origin=ME)]
        decision, self.led = decide_on_partition(self.led, events, 10.0)
        assert self.log.append([decision]).verdicts == ["accepted"]
        assert self.led.token is not None
        self.tokens.append((instance, self.led.token))

    def fire(self) -> None:
        """The first claim, of the job's fire time; another who saw it due is refused."""
        due = ordered(occurrence_id(JOB, START), JOB, PARTITION, START, "schedule")
        claim = decide_claim(
            due, job_version=self.job.version, token=self.tokens[-1][1], window_s=30.0, origin=ME
        ).model_copy(update={"fires": 1, "next_fire": None})
        decision, self.job, (state,) = decide_on_fires(
            self.job, START, [(due, claim)], [Completed()]
        )
        instance, token = self.tokens[-1]
        fences = Fences(instance, {PARTITION: token})
        assert self.log.append([decision, decision], fences).verdicts == ["accepted", "conflict"]
        self.seen.append(state)

    def act(self, choice: int, back: int) -> None:
        """Somebody does something that made sense ``back`` states ago."""
        view = self.seen[max(0, len(self.seen) - 1 - back)]
        instance, token = self.tokens[max(0, len(self.tokens) - 1 - back)]
        possible = [
            (step, events)
            for step in OFTEN * 6 + NOW_AND_THEN * 3 + SELDOM
            if (events := answer(step, view, self.job.version, token, self.now))
        ]
        if not possible or (choice % 8 and all(step in SELDOM for step, _ in possible)):
            return
        step, events = possible[choice % len(possible)]
        decision, after = decide_on_occurrence(view, events, name="work")
        leads = step in ("claim", "lose", "skip")
        fences = Fences(instance, {PARTITION: token}) if leads else None
        before = len(self.log.tables.events)
        verdict = self.log.append([decision], fences).verdicts[0]
        current = view == self.seen[-1]
        deposed = leads and token != self.tokens[-1][1]
        assert verdict == ("stale" if deposed else "accepted" if current else "conflict")
        if verdict == "accepted":
            self.seen.append(after)
        else:
            assert len(self.log.tables.events) == before, "what is refused leaves no event"


def answer(
    step: str, view: OccurrenceState, job_version: int, token: int, now: datetime
) -> Sequence[OccurrenceEvent]:
    """What the deciders say of a state; nothing where they have nothing to say."""
    match view.state, step:
        case (("scheduled" | "retrying"), "claim") if view.due is not None and view.due <= now:
            return [
                decide_claim(view, job_version=job_version, token=token, window_s=30.0, origin=ME)
            ]
        case "claimed", "begin":
            return [Attempted(attempt=view.attempt, lease=30.0)]
        case (("running" | "stopping"), _) if events := outcome(step, view, now):
            return events
        case _:
            return order(step, view, now)


def outcome(step: str, view: OccurrenceState, now: datetime) -> Sequence[OccurrenceEvent]:
    match step:
        case "succeed":
            return [Succeeded(attempt=view.attempt)]
        case "fail" | "give up":
            return decide_failure(
                view, kind="transport" if step == "fail" else "argument", error="no", seconds=0.1,
                retry=RETRY, now=now, owner="ann", origin=ME,
            )  # fmt: skip
        case "lose":
            return decide_loss(
                view, retry=RETRY, on_unknown="retry", now=now, owner="ann", origin=ME
            )
        case "snooze":
            return decide_snooze(view, until=now + timedelta(seconds=3), seconds=0.1, origin=ME)
        case "unknown":
            return decide_unknown(view, seconds=0.1, owner="ann", origin=ME)
        case "stop" if view.state == "stopping":
            return decide_stopped(view, seconds=0.1, origin=ME)
        case _:
            return []


def order(step: str, view: OccurrenceState, now: datetime) -> Sequence[OccurrenceEvent]:
    match step:
        case "cancel":
            return decide_cancel(view, "cancelled", origin=ME)
        case "skip":
            return decide_skip(view, "cancelled", origin=ME)
        case "recall":
            return decide_recall(view, now=now, origin=ME)
        case "replay" | "discard":
            try:
                if step == "discard":
                    return decide_discard(view, origin=ME)
                return decide_replay(view, now=now, origin=ME)
            except NotAllowed:
                return []
        case _:
            return []


OFTEN = ["claim", "begin", "fail", "lose", "snooze", "unknown"]
NOW_AND_THEN = ["give up", "stop", "recall", "replay"]
SELDOM = ["succeed", "cancel", "skip", "discard"]
"""What ends it all, so that long stories are told, too."""

ACTS = st.tuples(st.integers(0, 99), st.sampled_from([0, 0, 0, 0, 1, 2, 5]))
STEPS = st.one_of(ACTS, ACTS, ACTS, st.sampled_from([5.0, 60.0, "elect"]))


@settings(max_examples=200)
@given(st.lists(STEPS, max_size=50))
def test_whatever_was_seen_and_done_on_it_the_log_keeps_every_invariant(
    steps: list[tuple[int, int] | float | str],
) -> None:
    world = World()
    for step in steps:
        if isinstance(step, tuple):
            world.act(*step)
        elif isinstance(step, float):
            world.now += timedelta(seconds=step)
        else:
            world.elect()
    report = verify(SimulatedLogScan(world.log))
    assert [str(violation) for violation in report.violations] == []
    assert report.events == len(world.log.tables.events)
