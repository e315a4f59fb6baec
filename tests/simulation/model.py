"""What should have run: an account of its own, from the user's orders and the witness's notes.

Nothing here is decided by the domain's code. The fire times are counted out anew, the orders are
those that the user gave and was told of, and the log is read as JSON, for what it claims to have
happened. Then each fire time must have run once or must have a reason that holds; each run must
have ended as its handler ended; and each order must have had its effect.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic_core import from_json
from tests.simulation.own_schedules import fire_times
from tests.simulation.plan import COMMANDS

from horolog.domain.alert import MAX_TRIES, AlertState

if TYPE_CHECKING:
    from tests.simulation.world import World

CHANGING = timedelta(seconds=40)
"""What falls due this near to a change of its job may be seen as before or as after it."""

GRACE = timedelta(seconds=30)
"""Lateness up to this is no missed fire time."""


@dataclass(slots=True)
class Event:
    position: int
    at: datetime
    stream: UUID
    version: int
    kind: str
    state: dict[str, Any]


@dataclass(slots=True)
class Era:
    """A schedule, from when to when it was in force."""

    schedule: dict[str, Any]
    since: datetime
    until: datetime


@dataclass(slots=True)
class Job:
    """A job by its own events. ``held``: from when to when no fire time was to be claimed."""

    spec: dict[str, Any]
    eras: list[Era] = field(default_factory=list[Era])
    held: list[tuple[datetime, datetime]] = field(default_factory=list[tuple[datetime, datetime]])
    skipped: list[Event] = field(default_factory=list[Event])
    payloads: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    cancelled: datetime | None = None
    paused: datetime | None = None
    completed: datetime | None = None


@dataclass(slots=True)
class Life:
    """An occurrence by its events."""

    job: UUID
    fire: datetime
    kind: str
    events: list[Event] = field(default_factory=list[Event])

    @property
    def last(self) -> str:
        return self.events[-1].kind

    def has(self, kind: str, attempt: int) -> bool:
        return any(e.kind == kind and e.state.get("attempt") == attempt for e in self.events)


ENDS = frozenset({"succeeded", "dead_lettered", "skipped", "stopped", "discarded"})


class Model:
    """One account of one world; :meth:`check` says what does not agree."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._found: list[str] = []
        self._events = [
            Event(
                e.position,
                e.recorded_at,
                e.stream,
                e.version,
                e.topic.split(".")[1],
                from_json(e.state),
            )
            for e in world.keeping.history()
        ]
        self._about = {e.position: e.topic.split(".")[0] for e in world.keeping.history()}
        self._jobs: dict[UUID, Job] = {}
        self._lives: dict[UUID, Life] = {}
        self._changes: dict[UUID, list[Event]] = defaultdict(list)
        lease_s = world.plan.worker_settings.lease_s
        self._away_for_long = any(
            (a.kind.startswith(("log_", "slow_log")) and a.seconds > lease_s / 4)
            or (a.kind == "log_clock_step" and a.amount > lease_s / 4)
            for a in world.plan.actions
        )
        self._troubled = any(
            a.kind not in COMMANDS and not a.target.startswith("follower")
            for a in world.plan.actions
        )

    def check(self) -> list[str]:
        self._read()
        for identity, job in self._jobs.items():
            self._check_fire_times(identity, job)
        for identity, life in self._lives.items():
            self._check_life(identity, life)
        self._check_lanes()
        self._check_overlaps()
        self._check_orders()
        self._check_pauses()
        self._check_requests()
        self._check_index()
        self._check_publishing()
        self._check_given()
        self._check_deadlines()
        self._check_alerts()
        return self._found

    # Reading.

    def _read(self) -> None:
        end = self._world.now() + timedelta(days=10_000)
        for event in self._events:
            match self._about[event.position]:
                case "job":
                    self._read_job(event, end)
                case "occurrence":
                    self._read_occurrence(event)
                case _:
                    pass

    def _read_job(self, event: Event, end: datetime) -> None:
        if event.kind == "registered":
            spec = self._spec(event.state["key"])
            job = self._jobs[event.stream] = Job(spec)
            job.eras.append(Era(spec["schedule"], self._given_at(event) or event.at, end))
            job.payloads.append((event.position, 0))
            return
        job = self._jobs[event.stream]
        match event.kind:
            case "rescheduled":
                job.eras[-1].until = event.at
                job.eras.append(Era(self._ordered_schedule(event), event.at, end))
            case "payload_changed":
                job.payloads.append((event.position, event.state["payload"]["n"]))
                self._changes[event.stream].append(event)
            case "paused":
                job.paused = event.at
            case "resumed" if job.paused is not None:
                job.held.append((job.paused, event.at))
                job.paused = None
            case "cancelled":
                job.cancelled = event.at
                job.eras[-1].until = event.at
            case "completed":
                job.completed = event.at
            case "fires_skipped":
                job.skipped.append(event)
            case _:
                pass

    def _given_at(self, event: Event) -> datetime | None:
        """When a client gave a registration in its transaction: its fire times begin there."""
        for entry in self._world.inbox.entries:
            if entry.document["correlation"] == event.state.get("correlation"):
                return datetime.fromisoformat(entry.document["given_at"])
        return None

    def _read_occurrence(self, event: Event) -> None:
        life = self._lives.get(event.stream)
        if life is None:
            if event.kind == "claimed":
                life = Life(
                    UUID(event.state["job_id"]),
                    datetime.fromisoformat(event.state["fire_time"]),
                    event.state.get("kind", "schedule"),
                )
            else:
                # What was ordered and never claimed: skipped, with its job.
                life = Life(UUID(int=0), event.at, "ordered")
            self._lives[event.stream] = life
        life.events.append(event)

    def _spec(self, key: str) -> dict[str, Any]:
        return next(
            action.what["spec"]
            for action in self._world.plan.actions
            if action.kind == "register" and action.what["spec"]["key"] == key
        )

    def _ordered_schedule(self, event: Event) -> dict[str, Any]:
        """Which of the user's orders this was: the one whose instants it begins with."""
        stated = event.state["schedule"]
        for order in self._world.orders:
            if order.action.kind == "reschedule" and _same(order.action.what["schedule"], stated):
                return order.action.what["schedule"]
        self._say(f"job {event.stream} was rescheduled to {stated}, which nobody ordered")
        return {"kind": "once", "at": self._world.plan.start.isoformat()}

    # Fire times.

    def _check_fire_times(self, identity: UUID, job: Job) -> None:
        world = self._world
        assert world.rested_at is not None
        claimed = Counter(
            life.fire
            for life in self._lives.values()
            if life.job == identity and life.kind == "schedule"
        )
        for fire, count in claimed.items():
            if count > 1:
                self._say(f"{fire} of job {identity} has {count} occurrences")
        wanted: set[datetime] = set()
        for era in job.eras:
            until = min(era.until, world.rested_at)
            times = fire_times(era.schedule, era.since, until)
            wanted.update(times)
            for fire in times:
                if fire not in claimed and not self._is_excused(identity, job, era, fire):
                    self._say(
                        f"{fire} of job {identity} ({job.spec['name']}) did not run, and"
                        f" {_reason(job, fire)}"
                    )
        backfilled = {
            life.fire
            for life in self._lives.values()
            if life.job == identity and life.kind == "backfill"
        }
        for fire in claimed.keys() - wanted - backfilled:
            if not any(
                fire in fire_times(era.schedule, era.since - CHANGING, era.until + CHANGING)
                for era in job.eras
            ):
                self._say(f"{fire} of job {identity} ran, and is no fire time of it")

    def _is_excused(self, identity: UUID, job: Job, era: Era, fire: datetime) -> bool:
        """Whether what the log says about a fire time that did not run is true."""
        if fire >= era.until - CHANGING:
            return True  # it was due when the schedule was changed, or the job cancelled
        if job.paused is not None and fire >= job.paused - CHANGING:
            return True  # it is held by a pause that has not ended
        row = self._world.log.tables.jobs[identity]
        if job.paused is not None and row.held_fire is not None and fire >= row.held_fire:
            return _may_wait(job)  # it had not had its turn yet when all jobs were paused
        if job.cancelled == era.until and fire > self._last_turn(identity, job):
            return _may_wait(job) or self._troubled  # it waited for its turn, and was cancelled
        for event in job.skipped:
            first = datetime.fromisoformat(event.state["first"])
            last = datetime.fromisoformat(event.state["last"])
            if first <= fire <= last and era.since <= event.at <= era.until:
                return self._holds(job, event, fire)
        return False

    def _last_turn(self, identity: UUID, job: Job) -> datetime:
        """The last fire time of a job that was decided on."""
        claimed = [
            life.fire
            for life in self._lives.values()
            if life.job == identity and life.kind == "schedule"
        ]
        skipped = [datetime.fromisoformat(event.state["last"]) for event in job.skipped]
        return max([*claimed, *skipped], default=job.eras[0].since)

    def _holds(self, job: Job, event: Event, fire: datetime) -> bool:
        policies = job.spec["policies"]
        late = event.at - self._oldest(event) > GRACE - timedelta(seconds=5)
        match event.state["cause"]:
            case "paused":
                # What was due before the pause and had not had its turn is dropped with it.
                waited = _may_wait(job) or self._troubled
                held = list(job.held)
                if job.paused is not None and job.paused <= event.at:
                    held.append((job.paused, event.at))  # it was changed, and never resumed
                return any(
                    (since - CHANGING <= fire or waited) and fire <= until for since, until in held
                )
            case "superseded":
                # Something stands in for it, or its schedule was replaced.
                replaced = any(abs(era.since - event.at) <= CHANGING for era in job.eras[1:])
                caught_up = late and policies["catch_up"] in ("latest", "earliest")
                buffered = policies["overlap"] != "allow"
                return replaced or ((caught_up or buffered) and self._stands_in(job, event))
            case "misfire":
                if event.at - fire > timedelta(seconds=policies["catch_up_window"]):
                    return True
                return policies["catch_up"] == "skip" and event.at - fire > GRACE - SLACK
            case "overlap":
                return policies["overlap"] != "allow" and self._was_unfinished(job, event)
            case _:
                return False

    def _stands_in(self, job: Job, event: Event) -> bool:
        """Whether another fire time of the job runs where a range was dropped: it was claimed in
        the same breath, is still due, or had not ended yet."""
        following = event.state.get("next_fire")
        if following is not None and datetime.fromisoformat(following) <= event.at:
            return True
        return any(
            life.job == event.stream and life.events[0].at == event.at
            for life in self._lives.values()
        ) or self._was_unfinished(job, event)

    def _oldest(self, event: Event) -> datetime:
        """The first fire time of the job that was decided on in the same breath as a range."""
        first = datetime.fromisoformat(event.state["first"])
        claimed = (
            life.fire
            for life in self._lives.values()
            if life.job == event.stream and life.events[0].at == event.at
        )
        return min([first, *claimed])

    def _was_unfinished(self, job: Job, event: Event) -> bool:
        """Whether a run of the job was open a moment before the event."""
        for life in self._lives.values():
            if self._jobs.get(life.job) is not job:
                continue
            if life.events[0].position >= event.position:
                # Claimed in the same breath: what came before it gave way to it.
                if life.events[0].at == event.at:
                    return True
                continue
            ended = [e for e in life.events if e.kind in ENDS]
            if not ended or ended[-1].at >= event.at - CHANGING:
                return True
        # One that was ordered and not begun is open too.
        return any(
            order.action.kind in ("trigger", "backfill", "replay") for order in self._world.orders
        )

    # Runs.

    def _check_life(self, identity: UUID, life: Life) -> None:
        world = self._world
        if life.last not in ENDS:
            self._say(f"occurrence {identity} ends as {life.last}")
            return
        seen = world.witness.of(identity)
        attempts = [e.state["attempt"] for e in life.events if e.kind == "attempted"]
        for execution in seen:
            if execution.attempt not in attempts:
                self._say(f"attempt {execution.attempt} of {identity} ran, and the log has none")
                continue
            self._check_payload(life, execution)
        for event in life.events:
            self._check_outcome(identity, event, seen)
        self._check_retries(life, identity, seen)
        self._check_losses(life, identity)
        if life.last == "succeeded" and life.kind != "ordered":
            name = self._jobs[life.job].spec["name"]
            if name.startswith("transactional") and world.witness.effects[identity] != 1:
                count = world.witness.effects[identity]
                self._say(f"{identity} succeeded, and its effect was committed {count} times")
        elif world.witness.effects[identity]:
            self._say(f"the effect of {identity} was committed, and it is {life.last}")

    def _check_payload(self, life: Life, execution: Any) -> None:
        """A run has the payload that its job had when it was claimed."""
        claims = [
            e
            for e in life.events
            if e.kind == "claimed" and e.state["attempt"] == execution.attempt
        ]
        job = self._jobs.get(life.job)
        if not claims or job is None or life.kind == "backfill":
            return
        last = max(claims, key=lambda e: e.position)
        n = [n for position, n in job.payloads if position < last.position][-1]
        if execution.payload.get("n", 0) != n:
            self._say(
                f"attempt {execution.attempt} of {execution.occurrence} ran with"
                f" {execution.payload}, where its claim has n={n}"
            )
        begun = next(
            e
            for e in life.events
            if e.kind == "attempted" and e.state["attempt"] == execution.attempt
        )
        # Who was told that the job is changed sees it begin as it was no more.
        mine = max(p for p, one in job.payloads if one == n and p < last.position)
        for position, told in self._told_of_updates(life.job):
            if told < begun.at and mine < position:
                self._say(
                    f"attempt {execution.attempt} of {execution.occurrence} began at {begun.at}"
                    f" with n={n}, though the job was changed, which was told at {told}"
                )

    def _told_of_updates(self, identity: UUID) -> list[tuple[int, datetime]]:
        """Where in the log payloads were changed, and when whoever did it was told."""
        return [
            (event.position, order.ended)
            for order in self._world.orders
            if order.action.kind == "update"
            and order.answer == "done"
            and "given" not in order.action.what
            and order.ended is not None
            for event in self._changes.get(identity, ())
            if event.state["payload"]["n"] == order.action.what["n"]
            and order.began <= event.at <= order.ended
        ]

    def _check_outcome(self, identity: UUID, event: Event, seen: Any) -> None:
        attempt = event.state.get("attempt")
        execution = next((e for e in seen if e.attempt == attempt), None)
        name = self._jobs[self._lives[identity].job].spec["name"] if seen else ""
        match event.kind:
            case "succeeded":
                if event.state.get("reason") == "reconciled":
                    if not self._world.witness.did(identity):
                        self._say(f"{identity} was reconciled as done, and nothing had done it")
                elif execution is None or execution.outcome != "returned":
                    what = "never ran" if execution is None else execution.outcome or "never ended"
                    self._say(f"attempt {attempt} of {identity} succeeded, and its handler {what}")
                elif self._overran(identity, execution):
                    self._say(f"attempt {attempt} of {identity} succeeded after its timeout")
                elif event.state.get("result") != execution.result:
                    self._say(f"attempt {attempt} of {identity} has another handler's result")
            case "failed":
                hopeless = event.state["kind"] in ("permanent", "argument")
                if hopeless and event.state.get("retry_at") is not None:
                    self._say(f"attempt {attempt} of {identity} is hopeless, and is tried again")
                returned = execution is not None and execution.outcome == "returned"
                timed_out = event.state["kind"] in ("timeout", "transport")
                if returned and not timed_out and name not in ("deaf", "blocking"):
                    self._say(f"attempt {attempt} of {identity} failed, and its handler returned")
            case _:
                pass

    def _overran(self, identity: UUID, execution: Any) -> bool:
        """Whether it was given more time than its job allows, by a process that never stood."""
        timeout = self._jobs[self._lives[identity].job].spec["policies"].get("timeout")
        began, ended = execution.began, execution.ended
        if timeout is None or any(began <= at <= ended for at in execution.process.troubled_at):
            return False
        grace_s = self._world.plan.worker_settings.cancel_grace_s
        return execution.ended - execution.began > timeout + grace_s + 1.0

    def _check_losses(self, life: Life, identity: UUID) -> None:
        """No attempt is lost whose worker lived, was never frozen, and could reach the log."""
        if self._away_for_long:
            return
        for before, event in pairwise(life.events):
            if event.kind != "lost":
                continue
            attempted = next(
                e
                for e in reversed(life.events)
                if e.kind == "attempted" and e.position < event.position
            )
            machine = self._world.lives[attempted.state["actor"].removeprefix("worker/")]
            if not machine.troubled_at or self._seconds(event.at) < machine.troubled_at[0]:
                self._say(
                    f"attempt {event.state['attempt']} of {identity} was lost after {before.kind},"
                    f" and its worker {machine.name} was well"
                )

    def _seconds(self, at: datetime) -> float:
        """The world's seconds at an instant of the log's clock, or more."""
        return (at - self._world.plan.start).total_seconds()

    def _check_retries(self, life: Life, identity: UUID, seen: Any) -> None:
        """No budget is exceeded, none is cut short, and nobody is tried again too soon."""
        job = self._jobs.get(life.job)
        if job is None:
            return
        retry = job.spec["policies"]["retry"]
        failures = 0
        for number, event in enumerate(life.events):
            match event.kind:
                case "failed" | "lost":
                    failures += 1
                    self._check_delay(retry, failures, event, seen)
                    if failures > retry["max_attempts"]:
                        self._say(f"{identity} failed {failures} times: more than it may")
                case "dead_lettered":
                    before = life.events[number - 1]
                    hopeless = before.state.get("kind") in ("argument", "permanent")
                    if (
                        event.state["cause"] == "exhausted"
                        and failures < retry["max_attempts"]
                        and not hopeless
                    ):
                        self._say(f"{identity} was given up after {failures} failures")
                case "replayed":
                    failures = 0
                case _:
                    pass

    def _check_delay(self, retry: dict[str, Any], failures: int, event: Event, seen: Any) -> None:
        retry_at = event.state.get("retry_at")
        if retry_at is None or event.kind == "lost":
            return
        attempt = event.state["attempt"]
        execution = next((e for e in seen if e.attempt == attempt), None)
        if execution is None or execution.ended is None:
            return
        least = min(retry["cap"], retry["base"] * 2.0 ** (failures - 1))
        if event.state["kind"] == "retryable":
            least = 20.0 * self._world.plan.tempo
        # By the log's clock as far as it was stepped; that only ever adds to it.
        ended = self._world.plan.start + timedelta(seconds=execution.ended)
        if event.state["kind"] == "timeout":
            return
        stood = timedelta(seconds=getattr(execution.process, "stood_s", 0.0))
        if datetime.fromisoformat(retry_at) + stood < ended + timedelta(seconds=least) - SLACK:
            self._say(f"attempt {attempt} of {event.stream} is tried again too soon: {retry_at}")

    # Limits.

    def _check_lanes(self) -> None:
        """Never more slots than the limit, at any position of the log."""
        held: dict[str, set[UUID]] = defaultdict(set)
        for event in self._events:
            if self._about[event.position] != "occurrence":
                continue
            life = self._lives[event.stream]
            job = self._jobs.get(life.job)
            if job is None or (limit := job.spec["policies"].get("concurrency_limit")) is None:
                continue
            lane = job.spec["policies"].get("concurrency_key") or job.spec["key"]
            if event.kind in ("claimed", "attempted", "cancel_requested"):
                held[lane].add(event.stream)
            else:
                held[lane].discard(event.stream)
            if len(held[lane]) > limit:
                self._say(f"position {event.position}: {len(held[lane])} runs where {limit} may")

    def _check_overlaps(self) -> None:
        """Where runs must not overlap, none is claimed while another one is open."""
        open_: dict[UUID, set[UUID]] = defaultdict(set)
        replayed: set[UUID] = set()
        for event in self._events:
            if self._about[event.position] != "occurrence":
                continue
            life = self._lives[event.stream]
            if event.kind == "replayed":
                # Nobody who claims the job's next fire time at this moment can know of it.
                replayed.add(life.job)
            if event.kind in ENDS:
                open_[life.job].discard(event.stream)
                continue
            job = self._jobs.get(life.job)
            first = event.kind == "claimed" and event.state.get("fires") is not None
            if (
                first
                and job is not None
                and job.spec["policies"]["overlap"] != "allow"
                and life.job not in replayed
                and open_[life.job]
            ):
                self._say(f"{event.stream} was claimed while {open_[life.job]} was open")
            open_[life.job].add(event.stream)

    # Orders.

    def _check_orders(self) -> None:
        """What the user was told is so: a trigger runs, a cancelled job does not."""
        for order in self._world.orders:
            if order.answer == "" and order.action.kind != "limit_queue":
                self._say(f"the order {order.action} was never answered")
            if order.answer != "done" or "given" in order.action.what:
                continue
            if order.action.kind == "trigger" and order.result is not None:
                self._check_trigger(order.result.id)
            if (
                order.action.kind == "register"
                and order.result is not None
                and order.result.id not in self._jobs
            ):
                self._say(f"job {order.result.id} was registered, and the log does not know it")
        for identity, life in self._lives.items():
            job = self._jobs.get(life.job)
            if job is None or job.cancelled is None:
                continue
            for event in life.events:
                if event.kind in ("claimed", "attempted") and event.at > job.cancelled:
                    self._say(f"{identity} was {event.kind} after its job had been cancelled")

    def _check_pauses(self) -> None:
        """What a pause held back does not run, unless the user asked for it."""
        if any(o.action.what.get("catch_up") for o in self._world.orders):
            return
        for identity, life in self._lives.items():
            job = self._jobs.get(life.job)
            if job is None or life.kind != "schedule":
                continue
            for since, until in job.held:
                first = life.events[0]
                if since + CHANGING < life.fire < until - CHANGING and first.at > until:
                    self._say(f"{identity} ran, whose fire time {life.fire} lay in a pause")

    def _check_requests(self) -> None:
        """The same request is one run."""
        seen = Counter(
            (event.stream, event.state["request_id"])
            for event in self._events
            if event.kind == "triggered" and event.state.get("request_id")
        )
        for (job, request_id), count in seen.items():
            if count > 1:
                self._say(f"{request_id} of job {job} ordered {count} runs")

    def _check_index(self) -> None:
        """What may fire is known to be due, and nothing else is: a scanner that is given rows which
        it must not claim reads them for ever."""
        runs = [row.run for row in self._world.log.tables.next_runs.values()]
        due = {run.job_id for run in runs if run.kind == "job"}
        for identity, job in self._jobs.items():
            if identity in due and (job.paused is not None or job.cancelled is not None):
                how = "paused" if job.cancelled is None else "cancelled"
                self._say(f"job {identity} is {how}, and its next fire time is in the index")

    def _check_given(self) -> None:
        """A command of a client's transaction is carried out once, if that was committed."""
        said = Counter(
            event.state.get("correlation")
            for event in self._events
            if event.kind in ("registered", "triggered", "payload_changed")
        )
        for entry in self._world.inbox.entries:
            command, number = entry.document["command"], said[entry.document["correlation"]]
            fate = f"the {command} of job {entry.job_id} is {entry.fate}"
            if entry.fate in ("open", "waiting"):
                self._say(f"{fate} for ever")
            if number != (entry.fate == "carried out"):
                self._say(f"{fate}, and the log has it {number} times")
            if entry.fate == "set aside" and not self._may_be_refused(entry.job_id):
                self._say(f"{fate}, and nothing stood against it: {entry.error}")

    def _check_deadlines(self) -> None:
        """What was late is said, once, and nothing else is."""
        said = Counter[tuple[UUID, str]]()
        for event in self._events:
            if self._about[event.position] == "deadline":
                self._check_miss(event)
                run = event.state.get("occurrence_id")
                said[UUID(run or event.state["job_id"]), event.state["deadline"]] += 1
        soon = timedelta(seconds=80.0 * self._world.plan.tempo) + SLACK
        for identity, job in self._jobs.items():
            self._check_successes(identity, job, soon)
        # A lease, until somebody else leads, and two looks.
        seen = timedelta(seconds=50.0 * self._world.plan.tempo) + SLACK
        moves = self._moves()
        for identity, life in self._lives.items():
            first = life.events[0]
            # Of fire times that wait only a job's next one is known to be due before its claim.
            known = life.fire
            if life.kind == "schedule":
                known = moves.get((life.job, life.fire), first.at)
            for kind, due, happened in self._deadlines(life):
                if said[identity, kind] > 1:
                    self._say(
                        f"that {identity} missed its {kind} was said {said[identity, kind]} times"
                    )
                # Somebody leads and looks, but for scanners that are away or cannot ask.
                late = happened - max(due, known)
                if late > seen and not self._troubled and not said[identity, kind]:
                    self._say(f"{identity} missed its {kind} at {due}, and nobody said so")

    def _moves(self) -> dict[tuple[UUID, datetime], datetime]:
        """Since when a fire time was the next one of its job."""
        instant = datetime.fromisoformat
        return {
            (UUID(event.state.get("job_id") or str(event.stream)), instant(fire)): event.at
            for event in self._events
            if self._about[event.position] in ("job", "occurrence")
            and (fire := event.state.get("next_fire"))
        }

    def _check_miss(self, event: Event) -> None:
        due, kind = datetime.fromisoformat(event.state["due"]), event.state["deadline"]
        if due > event.at:
            self._say(f"a {kind} deadline was missed at {due}, which was later than {event.at}")
        if kind == "success":
            self._check_silence(event, due)
            return
        life = self._lives.get(UUID(event.state["occurrence_id"]))
        if life is None or any(e.kind == "replayed" for e in life.events):
            return  # never claimed: skipped, or cancelled with its job
        for other, at, happened in self._deadlines(life):
            if other == kind and happened <= due:
                self._say(f"{event.stream} missed no {kind} deadline: {at} was kept at {happened}")

    def _successes(self, identity: UUID, left: datetime | None = None) -> list[datetime]:
        """When the job was registered, and when a run of it succeeded, in their order; not those of
        fire times before ``left``."""
        times = [e.at for e in self._events if e.stream == identity and e.kind == "registered"]
        for life in self._lives.values():
            if life.job == identity and (left is None or life.fire >= left):
                times += [e.at for e in life.events if e.kind == "succeeded"]
        return sorted(times)

    def _check_silence(self, event: Event, due: datetime) -> None:
        """Nothing of the job had succeeded for as long as it may, and nobody had paused it."""
        identity = UUID(event.state["job_id"])
        job = self._jobs[identity]
        within = timedelta(seconds=job.spec["policies"]["expect_success_by"])
        # Where the last success has left the log, it counts from where that begins now: a run that
        # had fallen due before and succeeded after that instant is gone, too.
        bounds = self._world.keeping.left_at
        times = self._successes(identity, due - within if due - within in bounds else None)
        kept = [at for at in times if due - within < at <= due]
        if kept or due - within not in [*times, *bounds]:
            self._say(f"{event.stream} missed no success by {due}: there was one at {kept}")
        if any(since + CHANGING < event.at < until for since, until in job.held):
            self._say(f"{event.stream} missed a success by {due}, and its job was paused")

    def _check_successes(self, identity: UUID, job: Job, soon: timedelta) -> None:
        """That nothing of a job has succeeded for too long is said, once for each time."""
        within_s = job.spec["policies"].get("expect_success_by")
        said = [
            datetime.fromisoformat(event.state["due"])
            for event in self._events
            if self._about[event.position] == "deadline"
            and event.state["deadline"] == "success"
            and event.state["job_id"] == str(identity)
        ]
        if len(said) != len(set(said)):
            self._say(f"that job {identity} misses a success was said twice: {said}")
        if within_s is None or self._troubled:
            return
        rested = self._world.rested_at
        assert rested is not None
        stated = (job.paused, job.cancelled, job.completed, rested)
        ends = [at for at in stated if at is not None]
        times = self._successes(identity)
        for since, until in pairwise([*times, min([*ends, self._world.now()])]):
            within = timedelta(seconds=within_s)
            unpaused = not any(began < until and ended > since for began, ended in job.held)
            # Once the success has left the log, it counts from where that begins.
            begins = [since] + [
                bound
                for bound, at in self._world.keeping.left_at.items()
                if at < until and since not in self._successes(identity, bound)
            ]
            due = max(begins) + within
            if until - due > soon and unpaused and not {at + within for at in begins} & {*said}:
                self._say(f"job {identity} had no success by {due}, and nobody said so")

    def _deadlines(self, life: Life) -> list[tuple[str, datetime, datetime]]:
        """Each deadline of a run, when it was, and when what it asks for happened."""
        job = self._jobs.get(life.job)
        if job is None or life.kind == "backfill":
            return []
        found: list[tuple[str, datetime, datetime]] = []
        for kind, field_, kinds in (
            ("start", "start_within", ENDS | {"attempted"}),
            ("finish", "finish_within", ENDS),
        ):
            within_s = job.spec["policies"].get(field_)
            happened = next((e.at for e in life.events if e.kind in kinds), None)
            if within_s is not None and happened is not None:
                found.append((kind, life.fire + timedelta(seconds=within_s), happened))
        return found

    def _check_alerts(self) -> None:
        """Raised and resolved in turn, told once where nothing broke, and true in the end."""
        world, tempo = self._world, self._world.plan.tempo
        open_: dict[UUID, bool] = {}
        for event in self._events:
            if self._about[event.position] == "alert" and event.kind in _NOTICES:
                wanted = event.kind != "raised"
                if open_.get(event.stream, False) is not wanted:
                    self._say(f"alert {event.stream} was {event.kind} and is open: {not wanted}")
                open_[event.stream] = event.kind != "resolved"
                told = world.watchfulness.told[f"{event.stream}:{event.version}"]
                if told > 1 and not self._troubled and not self._killed():
                    self._say(f"notice {event.version} of {event.stream} was told {told} times")
        rule = world.watchfulness.rule
        for state in world.watchfulness.alerts():
            self._check_notice(state, timedelta(seconds=40.0 * tempo))
            if state.condition == "dead_letter_depth":
                holds = len(world.log.tables.dead_letters) >= (rule.dead_letters or 0)
                if state.is_open is not holds:
                    self._say(
                        f"the alert on dead letters is open: {state.is_open}, and not {holds}"
                    )

    def _check_notice(self, state: AlertState, soon: timedelta) -> None:
        """The last notice was told, or refused so far; then it is tried again soon, to a bound."""
        notice = f"notice {state.notice} of {state.stream}"
        if self._world.watchfulness.told[f"{state.stream}:{state.notice}"]:
            return
        for way in state.wanted:
            tries, again = state.failed.get(way, (0, state.noticed_at))
            if again is None and tries < MAX_TRIES:
                self._say(f"{notice} was given up after {tries} tries")
            if again is not None and self._world.now() - again > soon:
                self._say(f"{notice} was never told: {tries} tries, the next was due at {again}")

    def _killed(self) -> bool:
        """Whether a scanner ended in the middle of something."""
        return any(
            name.startswith("scanner") and machine.troubled_at
            for name, machine in self._world.lives.items()
        )

    def _may_be_refused(self, identity: UUID) -> bool:
        """A job that ended, or never was, takes no commands."""
        job = self._jobs.get(identity)
        return job is None or job.cancelled is not None or job.spec["schedule"]["kind"] == "once"

    def _check_publishing(self) -> None:
        """Every claim is in the queue soon, if not at once: by its leader or by the next one. Where
        scanners die that is a lease away, and no claim has to wait for its window to end."""
        plan = self._world.plan
        if plan.bounds or any(a.kind in _QUEUE_TROUBLES for a in plan.actions):
            return
        soon = 24.0 * plan.tempo + 3.0
        intervals = self._outages()
        for identity, life in self._lives.items():
            for event in life.events:
                if event.kind != "claimed":
                    continue
                attempt = event.state["attempt"]
                after = next((e for e in life.events if e.version == event.version + 1), None)
                if after is not None and after.kind in ("recalled", "skipped"):
                    continue
                arrived = self._world.witness.arrived.get((identity, attempt))
                at = claimed = self._seconds(event.at)
                for began, ended in intervals:
                    if began <= at + soon:
                        at = max(at, ended)
                if arrived is None or arrived > at + soon:
                    when = "never" if arrived is None else f"{arrived - claimed:.1f} s later"
                    self._say(f"attempt {attempt} of {identity} was claimed and published {when}")

    def _outages(self) -> list[tuple[float, float]]:
        """From when to when nobody could publish, or somebody has to take over what was left."""
        plan, world = self._world.plan, self._world
        found = [(a.at, a.at + a.seconds) for a in plan.actions if a.kind in _OUTAGES]
        counts = [*world.scanners_alive, (world.loop.now, 0)]
        found += [(at, until) for (at, alive), (until, _) in pairwise(counts) if not alive]
        found += [
            (at, at)
            for name, machine in world.lives.items()
            if name.startswith("scanner")
            for at in machine.troubled_at
        ]
        return sorted(found)

    def _check_trigger(self, identity: UUID) -> None:
        if identity not in self._lives:
            self._say(f"the run {identity} was ordered, and nothing became of it")

    def _say(self, what: str) -> None:
        self._found.append(what)


def _may_wait(job: Job) -> bool:
    """Whether what is due may have to wait for runs before it, for as long as that takes."""
    policies = job.spec["policies"]
    limited = policies.get("concurrency_limit") or policies.get("rate_limit")
    return bool(limited) or policies["overlap"] != "allow" or policies["catch_up"] == "all"


def _reason(job: Job, fire: datetime) -> str:
    """What the log says of a fire time that did not run."""
    for event in job.skipped:
        first, last = (datetime.fromisoformat(event.state[name]) for name in ("first", "last"))
        if first <= fire <= last:
            policies = job.spec["policies"]
            return (
                f"{event.state['cause']!r}, said at {event.at}, is not true (overlap"
                f" {policies['overlap']}, catch_up {policies['catch_up']})"
            )
    return "nothing says why"


_OUTAGES = frozenset({"queue_away", "queue_cut", "log_away", "log_cut"})
_QUEUE_TROUBLES = frozenset(
    {
        "slow_queue", "slow_log", "full", "delete_stream", "lose_end", "purge_stream",
        "delete_consumer", "messages_lost", "confirmations_lost", "queue_requests_lost",
        "queue_answers_lost", "log_answers_lost", "log_requests_lost", "freeze", "suspend",
        "log_clock_step",
    }
)  # fmt: skip


SLACK = timedelta(seconds=0.5)

_NOTICES = frozenset({"raised", "repeated", "resolved"})


def _same(ordered: dict[str, Any], stated: dict[str, Any]) -> bool:
    if ordered["kind"] != stated["kind"]:
        return False
    match ordered["kind"]:
        case "once":
            return _instant(ordered["at"]) == _instant(stated["at"])
        case "every":
            return float(ordered["seconds"]) == float(stated["seconds"]) and _instant(
                ordered["anchor"]
            ) == _instant(stated["anchor"])
        case _:
            expression = f"{ordered['minutes']} {ordered['hours']} * * *"
            return (expression, ordered["zone"]) == (stated["expression"], stated["zone"])


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
