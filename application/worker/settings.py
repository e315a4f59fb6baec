"""The settings of a worker: one frozen model, read once; every number has its unit in its name."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Seconds = Annotated[float, Field(gt=0, le=30 * 86_400, allow_inf_nan=False)]


class WorkerSettings(BaseModel):
    """What a worker takes on, how it tells that it lives, and how it stops.

    Five different times bound a run, and none of them does the work of another: the claim's window
    (the scanner's: is the message still queued?), ``ack_wait_s`` (the queue's: is the delivery
    alive?), ``lease_s`` (the log's: is the attempt alive?), the job's ``timeout`` (how long the
    handler may take, from its start) and ``drain_grace_s`` (how long a stop waits for it).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 100
    """``async def`` handlers running at once. Fewer: gentler to the downstream. More: more in
    flight on one event loop, and more to try again when the process dies."""

    threads: Annotated[int, Field(ge=1, le=1_000)] = 16
    """``def`` handlers running at once, each in a thread. A handler that ignores its timeout keeps
    its thread until it returns."""

    processes: Annotated[int, Field(ge=1, le=256)] = 2
    """Handlers with ``process=True`` running at once, each in a process of its own; the processes
    are started when needed and kept. More than there are processors gains nothing where they
    compute."""

    transactions: Annotated[int, Field(ge=1, le=1_000)] = 10
    """Transactional handlers running at once; each has a Postgres connection of its own."""

    queue_limits: dict[str, Annotated[int, Field(ge=1, le=10_000)]] = Field(default_factory=dict)
    """Runs of a queue at once, by its name; of a queue that is not named, as many as there is room
    for. Fewer: a slow queue leaves room for the others."""

    lease_s: Seconds = 30.0
    """How long an attempt may be silent before it is given up as lost. Shorter: a dead worker's
    runs are tried again earlier. Longer: a worker may stall longer (a pause of its machine, a
    handler that never yields the interpreter) and still keep its runs."""

    heartbeat_s: Seconds = 10.0
    """Between two extensions of a long run's lease. At most a third of ``lease_s``, so that two may
    fail. Runs that end sooner never cost one."""

    ack_wait_s: Seconds = 30.0
    """What the queue's consumers have: a delivery neither acknowledged nor extended for so long is
    delivered again. Long runs extend it at a third of it."""

    append_decisions: Annotated[int, Field(ge=2, le=10_000)] = 500
    """The most decisions in one append. More: a flood costs fewer transactions, each of which
    others wait for longer."""

    gather_s: Annotated[float, Field(ge=0, le=1)] = 0.005
    """How long outcomes may be gathered for one append while more of them keep arriving. What
    arrives alone is appended at once, whatever this says. Longer: fewer, larger transactions."""

    uncommitted_runs: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Outcomes that may wait for the log; beyond, no further run is begun. It bounds what is
    kept in memory while Postgres is away, and what a crash then makes run again."""

    retry_append_s: Annotated[float, Field(gt=0, le=60)] = 0.25
    """Between two tries to append while Postgres is away."""

    unknown_handler_wait_s: Annotated[float, Field(ge=0, le=30 * 86_400)] = 3_600.0
    """How long a run may wait for a worker that has its handler; then it is dead-lettered with the
    cause ``unknown_handler``. Shorter: a wrong name is told earlier. Longer: jobs may be
    registered longer before their worker is deployed."""

    unknown_handler_delay_s: Seconds = 5.0
    """After how long a run without a handler here is offered again, to whichever worker."""

    give_back_delay_s: Annotated[float, Field(ge=0, le=3_600)] = 1.0
    """After how long a message that this worker cannot begin is offered again."""

    drain_grace_s: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """How long a stop waits for running handlers before it cancels them and gives their runs back
    (which uses up no attempt). Less than what the process manager waits before it kills."""

    cancel_grace_s: Annotated[float, Field(ge=0, le=3_600)] = 5.0
    """How long a cancelled handler may take to clean up before its run is decided without it."""

    blocked_loop_s: Annotated[float, Field(gt=0, le=3_600)] = 1.0
    """A handler that keeps the event loop from running for so long is named in the log."""

    @property
    def trusted_s(self) -> float:
        """For how long after its beginning an attempt surely has its lease: a tenth of that is left
        for the difference in speed of two clocks."""
        return self.lease_s * 0.9

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.heartbeat_s * 3 > self.lease_s:
            raise ValueError(
                f"heartbeat_s={self.heartbeat_s} is more than a third of lease_s={self.lease_s}:"
                " two heartbeats must be able to fail"
            )
        return self
